package io.gpunvme.gpu.transfer;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Short transfers of many threads. Launching a kernel takes longer than what it is launched for, so
 * those that wait are carried out by one kernel: by the thread that finds nobody at work, or that
 * has waited longest. Safe for all threads.
 */
final class JoinedRequests {
  /** Commands that are carried out together at most. */
  static final int MOST_COMMANDS = 256;

  private final GpuLane lane;

  /** Those that nobody carries out yet; guarded by this. */
  private final Deque<GpuRequest> waiting = new ArrayDeque<>();

  /** The request whose thread leads; guarded by this. */
  private @Nullable GpuRequest leader;

  JoinedRequests(GpuLane lane) {
    this.lane = lane;
  }

  /**
   * Returns when it is over; what it has become is in the request.
   *
   * @return false if it must be carried out in another way: its thread has a request here already,
   *     which asked whether to end, and was answered by a program that transfers meanwhile
   */
  boolean carryOut(GpuRequest mine) {
    if (!add(mine)) {
      return false;
    }
    if (mine.awaitLead()) {
      List<GpuRequest> batch = takeWith(mine);
      try {
        if (!batch.isEmpty()) {
          lane.carryOut(batch, true);
        }
      } catch (Throwable e) {
        // Each one's own thread throws it.
        batch.forEach(request -> request.job().fail(e));
      } finally {
        // The next one first: it has work to do.
        passOn();
        batch.forEach(GpuRequest::end);
      }
    }
    return true;
  }

  private synchronized boolean add(GpuRequest mine) {
    GpuRequest leads = leader;
    if ((leads != null && leads.isMine()) || waiting.stream().anyMatch(GpuRequest::isMine)) {
      return false;
    }
    waiting.add(mine);
    if (leads == null) {
      leader = mine;
      mine.lead();
    }
    return true;
  }

  /** It and those that go with it; none if it was cancelled meanwhile. */
  private synchronized List<GpuRequest> takeWith(GpuRequest mine) {
    waiting.remove(mine);
    List<GpuRequest> batch = new ArrayList<>();
    if (mine.job().failed()) {
      return batch;
    }
    batch.add(mine);
    TransferPlan plan = mine.job().plan();
    int commands = plan.commands();
    for (Iterator<GpuRequest> others = waiting.iterator(); others.hasNext(); ) {
      GpuRequest other = others.next();
      TransferJob job = other.job();
      job.cancelIfAsked();
      if (job.failed()) {
        others.remove();
        other.end();
      } else if (plan.goesWith(job.plan()) && commands + job.plan().commands() <= MOST_COMMANDS) {
        others.remove();
        batch.add(other);
        commands += job.plan().commands();
      }
    }
    return batch;
  }

  private synchronized void passOn() {
    GpuRequest next = waiting.peek();
    leader = next;
    if (next != null) {
      next.lead();
    }
  }
}
