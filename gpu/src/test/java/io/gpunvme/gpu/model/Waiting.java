package io.gpunvme.gpu.model;

import io.gpunvme.gpu.model.QueueState.Back;
import io.gpunvme.gpu.model.QueueState.Outcome;
import io.gpunvme.gpu.model.QueueState.Slot;
import io.gpunvme.gpu.model.QueueState.Stage;

/** How lanes learn what became of their commands and give their slots back. */
final class Waiting {
  private final QueueConfig config;
  private final QueueState q;
  private final Service service;
  private final Submission submission;
  private final LiveRecovery live;

  Waiting(
      QueueConfig config, QueueState q, Service service, Submission submission, LiveRecovery live) {
    this.config = config;
    this.q = q;
    this.service = service;
    this.submission = submission;
    this.live = live;
  }

  /**
   * Each lane looks at its slot; the group may become the holder. A lane may also have looked just
   * before its slot was completed, so becoming the holder does not depend on what the slots say.
   */
  void look(long[] from, int t, Steps steps) {
    for (int lane = 0; lane < QueueState.LANES; lane++) {
      if ((q.mine[t].get(from) >> lane & 1) != 0) {
        look(from, t, lane, steps);
      }
    }
    if (config.helps(t) && !config.has(Flaw.WAITER_DOES_NOT_SERVE)) {
      service.offer(from, t, Back.WAIT, steps);
      live.offer(from, t, Back.WAIT, steps);
    }
  }

  private void look(long[] from, int t, int lane, Steps steps) {
    int c = submission.command(from, t, lane);
    int at = q.commandSlot[c].get(from);
    boolean cid = q.hasCid(from, at, c);
    boolean done = q.is(from, at, Slot.DONE) || q.is(from, at, Slot.ABORTED);
    boolean flying = cid && q.is(from, at, Slot.IN_FLIGHT);
    boolean expired = mayExpire(from, c);
    if (done && cid && config.has(Flaw.BIT_BEFORE_STATUS)) {
      long[] s = steps.begin(t);
      q.lane[t].set(s, lane);
      q.go(s, t, Pc.FREE_BIT);
      steps.end();
    } else if (done && (cid || config.has(Flaw.WAIT_FOR_ANY_GENERATION))) {
      takeStatus(from, t, lane, steps);
    } else if (!flying && expired && config.has(Flaw.QUARANTINE_FAILURE_MEANS_DONE)) {
      takeStatus(from, t, lane, steps);
    } else if (!flying && !config.has(Flaw.QUARANTINE_FAILURE_MEANS_DONE)) {
      giveUp(from, t, lane, Outcome.LOST_IN_RECOVERY, steps);
    }
    boolean byStore = config.has(Flaw.QUARANTINE_BY_STORE);
    boolean ignored = config.has(Flaw.QUARANTINE_FAILURE_IGNORED);
    if (expired && (flying || done && cid && (byStore || ignored))) {
      giveUp(from, t, lane, Outcome.TIMEOUT, steps);
    }
  }

  private boolean mayExpire(long[] s, int c) {
    return switch (config.deadlines) {
      case NEVER -> false;
      case WHEN_LOST -> q.is(s, c, Stage.GONE) || q.early.get(s) > 0;
      case ANY -> true;
    };
  }

  private void takeStatus(long[] from, int t, int lane, Steps steps) {
    long[] s = steps.begin(t);
    q.lane[t].set(s, lane);
    status(s, t, steps);
    q.go(s, t, Pc.FREE_BIT);
    steps.end();
  }

  private void status(long[] s, int t, Steps steps) {
    steps.did(Action.STATUS);
    int c = submission.command(s, t, q.lane[t].get(s));
    int at = q.commandSlot[c].get(s);
    boolean aborted = q.is(s, at, Slot.ABORTED);
    if (!aborted && !q.is(s, at, Slot.DONE) || q.slotCommand[at].get(s) != c + 1) {
      throw new Violation("command " + c + " takes a result that is not its own");
    }
    if (aborted && !q.is(s, c, Stage.GONE)) {
      throw new Violation("command " + c + " is ended while the controller may carry it out");
    }
    q.tell(s, c, aborted ? Outcome.ABORTED : Outcome.DONE);
  }

  /** Too late: the slot may be somebody else's already. */
  void statusLate(long[] s, int t, Steps steps) {
    status(s, t, steps);
    over(s, t, q.lane[t].get(s));
  }

  /** At the deadline: compare-and-swap IN_FLIGHT with this CID by QUARANTINED. */
  private void giveUp(long[] from, int t, int lane, Outcome outcome, Steps steps) {
    long[] s = steps.begin(t);
    int c = submission.command(s, t, lane);
    int at = q.commandSlot[c].get(s);
    q.tell(s, c, outcome);
    if (outcome == Outcome.LOST_IN_RECOVERY) {
      steps.did(Action.GONE);
    } else {
      steps.did(Action.QUARANTINE);
      if (config.early > 0 && !q.is(s, c, Stage.GONE)) {
        q.early.add(s, -1);
      }
      if (config.has(Flaw.QUARANTINE_REUSED)) {
        q.lane[t].set(s, lane);
        q.put(s, at, Slot.FREE);
        q.go(s, t, Pc.FREE_BIT);
        steps.end();
        return;
      }
      if (!config.has(Flaw.QUARANTINE_FAILURE_IGNORED) || q.is(s, at, Slot.IN_FLIGHT)) {
        q.put(s, at, Slot.QUARANTINED);
      }
    }
    over(s, t, lane);
    steps.end();
  }

  /**
   * atomicOr on the set of free slots. The word keeps result and CID until the slot's next command.
   */
  void freeBit(long[] s, int t, Steps steps) {
    steps.did(Action.FREE_BIT);
    q.setFree(s, slotOfLane(s, t));
    if (config.has(Flaw.BIT_BEFORE_STATUS)) {
      q.go(s, t, Pc.STATUS);
    } else {
      over(s, t, q.lane[t].get(s));
    }
  }

  private int slotOfLane(long[] s, int t) {
    return q.commandSlot[submission.command(s, t, q.lane[t].get(s))].get(s);
  }

  private void over(long[] s, int t, int lane) {
    q.lane[t].set(s, 0);
    q.mine[t].set(s, q.mine[t].get(s) & ~(1 << lane));
    submission.waited(s, t);
  }
}
