package io.gpunvme.sim;

import io.gpunvme.nvme.spec.Cqe;
import java.util.ArrayList;
import java.util.List;

/**
 * Writes one worker's completions into the completion queues, never over an entry the host has not
 * consumed, and applies the faults that are about completions. Guarded by the worker's lock.
 */
final class CompletionPoster {
  private final ControllerStatus status;
  private final CommandPool pool;
  private final CommandScheduler scheduler;
  private final SimStats.Stripe stats;
  private final DoorbellErrors errors;
  private final List<Repair> repairs = new ArrayList<>();

  CompletionPoster(
      ControllerStatus status,
      CommandPool pool,
      CommandScheduler scheduler,
      SimStats.Stripe stats,
      DoorbellErrors errors) {
    this.status = status;
    this.pool = pool;
    this.scheduler = scheduler;
    this.stats = stats;
    this.errors = errors;
  }

  /**
   * Posts the completion of a finished command and recycles it, now or as soon as there is room.
   */
  void post(SimCommand c, long now) {
    SubmissionQueue sq = queue(c);
    if (c.announced) {
      recycle(c, sq);
      return;
    }
    CompletionQueue cq = sq.cq();
    if (cq.holdsBack() || !hasRoom(cq)) {
      stats.add(SimStats.Counter.HELD_BACK, 1);
      if (!c.linked) {
        sq.link(c);
      }
      cq.holdBack(c);
    } else {
      write(c, sq, cq, now);
    }
  }

  /** Posts what was held back, as far as the host has made room. Returns how many. */
  int postHeldBack(CompletionQueue cq, long now) {
    int posted = 0;
    while (cq.holdsBack() && cq.hasRoom()) {
      SimCommand c = cq.takeHeldBack();
      if (c != null) {
        write(c, queue(c), cq, now);
        posted++;
      }
    }
    return posted;
  }

  /** Takes over the host's head if it moved. */
  void updateHead(CompletionQueue cq) {
    if (cq.doorbell().changed(true)) {
      stats.doorbell(cq.doorbell());
      if (cq.headIsWrong()) {
        errors.report(stats, ControllerEvents.ERROR_INVALID_DOORBELL_VALUE);
      }
    }
  }

  /**
   * Posts the completion of a command that has not executed, once, as if it had succeeded. Its CID
   * is the host's again. Returns false if it was posted before, or there is no room for it.
   */
  boolean announce(SimCommand c) {
    SubmissionQueue sq = queue(c);
    CompletionQueue cq = sq.cq();
    if (c.announced || cq.holdsBack() || !hasRoom(cq) || !cq.isMapped()) {
      return false;
    }
    c.announced = true;
    c.status = 0;
    put(cq, c, sq.head(), c.cid, cq.phase());
    cq.interruptDue(true);
    if (c.ownsCid) {
      sq.release(c.cid);
      c.ownsCid = false;
    }
    return true;
  }

  private boolean hasRoom(CompletionQueue cq) {
    if (!cq.hasRoom()) {
      updateHead(cq);
    }
    return cq.hasRoom();
  }

  private void write(SimCommand c, SubmissionQueue sq, CompletionQueue cq, long now) {
    if (!cq.isMapped()) {
      status.fatal("completion queue " + cq.qid() + " is not mapped");
      if (!c.linked) {
        sq.link(c);
      }
      return;
    }
    FaultRule fault = c.fault;
    if (fault == null) {
      put(cq, c, sq.head(), c.cid, cq.phase());
      cq.interruptDue(true);
    } else {
      putFaulty(cq, c, fault, now);
    }
    if (c.status != 0) {
      stats.add(SimStats.Counter.FAILED, 1);
    }
    if (sq.reordering() > 0) {
      overtake(c, sq, now);
    }
    recycle(c, sq);
  }

  private void put(CompletionQueue cq, SimCommand c, int sqhd, int cid, int phase) {
    // Dword 3 goes last with release: the host, which acquires it, sees the other dwords and the
    // data moved before.
    Cqe.put(cq.segment(), cq.offset(), c.dw0, c.dw1, sqhd, c.sqid, cid, c.status, phase);
    cq.advance();
    stats.add(SimStats.Counter.COMPLETIONS, 1);
  }

  /** Ends a command's life without posting anything. */
  void recycle(SimCommand c, SubmissionQueue sq) {
    sq.unlink(c);
    if (c.ownsCid) {
      sq.release(c.cid);
    }
    pool.release(c);
  }

  // ---- faults

  private void putFaulty(CompletionQueue cq, SimCommand c, FaultRule fault, long now) {
    int sqhd = queue(c).head();
    int phase = cq.phase();
    switch (fault.action()) {
      case WRONG_CID -> put(cq, c, sqhd, c.cid ^ fault.amount(), phase);
      case SQHD_BAD -> put(cq, c, fault.amount(), c.cid, phase);
      case DUPLICATE -> {
        put(cq, c, sqhd, c.cid, phase);
        if (cq.hasRoom()) {
          put(cq, c, sqhd, c.cid, cq.phase());
        }
      }
      case TORN -> {
        repairs.add(new Repair(cq, c, now + fault.nanos()));
        cq.publish(Cqe.dw3(c.cid, c.status, phase));
        stats.add(SimStats.Counter.COMPLETIONS, 1);
      }
      case WRONG_PHASE -> {
        if (fault.nanos() > 0) {
          repairs.add(new Repair(cq, c, now + fault.nanos()));
        }
        put(cq, c, sqhd, c.cid, phase ^ 1);
      }
      default -> put(cq, c, sqhd, c.cid, phase);
    }
    if (fault.action() != FaultRule.Action.LOST_INTERRUPT) {
      cq.interruptDue(true);
    }
  }

  /** Completes entries that were half written. Returns how many. */
  int repair(long now) {
    if (repairs.isEmpty()) {
      return 0;
    }
    int before = repairs.size();
    repairs.removeIf(r -> r.isOver() || r.tryApply(now));
    return before - repairs.size();
  }

  /** Whether entries are half written: the worker must not sleep long. */
  boolean hasRepairs() {
    return !repairs.isEmpty();
  }

  /** One more completion of the queue has been posted before those that let others overtake. */
  private void overtake(SimCommand posted, SubmissionQueue sq, long now) {
    if (posted.overtakers > 0) {
      posted.overtakers = 0;
      sq.reordering(sq.reordering() - 1);
    }
    for (SimCommand c = sq.firstOutstanding(); c != null; c = c.next) {
      // Without room in the completion queue it has had its time, and waits for its turn already.
      boolean waits = c.heapIndex != SimCommand.NOT_SCHEDULED;
      if (waits && c.overtakers > 0 && --c.overtakers == 0) {
        sq.reordering(sq.reordering() - 1);
        scheduler.remove(c);
        c.due = now;
        scheduler.add(c);
      }
    }
  }

  /** The queue a command in use came from. */
  static SubmissionQueue queue(SimCommand c) {
    SubmissionQueue sq = c.queue;
    if (sq == null) {
      throw new IllegalStateException("command " + c.cid + " was never fetched");
    }
    return sq;
  }

  /** The next entry of a queue as it should read, to be written when it is due. */
  private static final class Repair {
    private final CompletionQueue cq;
    private final int index;
    private final long position;
    private final int dw0;
    private final int dw1;
    private final int sqhd;
    private final int sqid;
    private final int cid;
    private final int status;
    private final int phase;
    private final long due;

    Repair(CompletionQueue cq, SimCommand c, long due) {
      this.cq = cq;
      index = cq.tail();
      position = cq.posted();
      dw0 = c.dw0;
      dw1 = c.dw1;
      sqhd = queue(c).head();
      sqid = c.sqid;
      cid = c.cid;
      status = c.status;
      phase = cq.phase();
      this.due = due;
    }

    /** Whether the host has taken the entry as it was, so that the slot may be another's by now. */
    boolean isOver() {
      return cq.isDeleted() || cq.consumed() > position;
    }

    boolean tryApply(long now) {
      if (now - due < 0 || !cq.isMapped()) {
        return false;
      }
      Cqe.put(cq.segment(index), cq.offset(index), dw0, dw1, sqhd, sqid, cid, status, phase);
      cq.rewritten(index);
      cq.interruptDue(true);
      return true;
    }
  }
}
