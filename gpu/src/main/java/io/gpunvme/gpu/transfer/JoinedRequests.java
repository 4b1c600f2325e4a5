package io.gpunvme.gpu.transfer;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;

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

  /** Whether a thread leads; guarded by this. */
  private boolean led;

  JoinedRequests(GpuLane lane) {
    this.lane = lane;
  }

  /** Returns when it is over; what it has become is in the request. */
  void carryOut(GpuRequest mine) {
    add(mine);
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
  }

  private synchronized void add(GpuRequest mine) {
    waiting.add(mine);
    if (!led) {
      led = true;
      mine.lead();
    }
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
    led = next != null;
    if (next != null) {
      next.lead();
    }
  }
}
