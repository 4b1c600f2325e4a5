package io.gpunvme.gpu.model;

import io.gpunvme.gpu.model.QueueConfig.Leaving;
import io.gpunvme.gpu.model.QueueState.Back;
import io.gpunvme.gpu.model.QueueState.Slot;

/**
 * What the holder of the service word does for everybody: rings doorbells, hands out completions.
 */
final class Service {
  /** How far a lane of the holder is with its CQE. */
  enum CqeStep {
    NONE,
    /** Half of it was read; without the right order of reads only. */
    HALF,
    DELIVER,
    LATE_WORD,
    LATE_BIT
  }

  private final QueueConfig config;
  private final QueueState q;

  Service(QueueConfig config, QueueState q) {
    this.config = config;
    this.q = q;
  }

  /** A caller that waits may become the holder: compare-and-swap of a word that is not LOCKED. */
  void offer(long[] from, int t, Back back, Steps steps) {
    if (!q.hasService(from, QueueState.LOCKED)) {
      long[] s = steps.begin(t);
      steps.did(Action.SERVE);
      enter(s, t, back);
      steps.end();
    }
  }

  /** Takes the word: LOCKED is set and PENDING cleared. */
  void enter(long[] s, int t, Back back) {
    int kept = config.has(Flaw.CLEAR_AFTER_SCAN) ? q.service.get(s) : 0;
    q.service.set(s, kept | QueueState.LOCKED);
    q.back[t].set(s, back.ordinal());
    q.go(s, t, Pc.SCAN);
  }

  // ---- ring pass

  /**
   * Counts the marked positions behind {@code rung}. One load a position on the device; a mark
   * stays until the position was announced, so all loads together see what the last one sees.
   */
  void scan(long[] s, int t, Steps steps) {
    steps.did(Action.SCAN);
    int rung = q.rung.get(s);
    int most = config.has(Flaw.RING_LIMIT) ? 1 : config.sqSize;
    int n = 0;
    while (n < most && isMarked(s, rung + n)) {
      n++;
    }
    int tickets = q.unrung(s);
    if (n > tickets) {
      throw new Violation("a position without a ticket is taken for written");
    }
    if (n == 0) {
      rang(s, t);
      return;
    }
    // Else it would look again, for commands whose lanes are between their ticket and their mark.
    boolean isLast = config.has(Flaw.RUNG_NOT_WRAPPED) ? rung + n == q.ticket.get(s) : n == tickets;
    if (n == tickets && !isLast) {
      throw new Violation("the holder looks again although every ticket is marked");
    }
    q.rung.advance(s, n);
    q.tail[t].set(s, n);
    if (config.has(Flaw.LEAVE_BEFORE_DOORBELL)) {
      q.tail[t].set(s, rung + n);
      rang(s, t);
    } else {
      q.go(s, t, Pc.DOORBELL);
    }
  }

  boolean isMarked(long[] s, int p) {
    if (config.has(Flaw.NO_MARKS)) {
      return p < q.ticket.get(s);
    }
    return q.marks[p % config.sqSize].get(s) == config.lap(p);
  }

  /** One store announces everything that the scan has found. */
  void doorbell(long[] s, int t, Steps steps) {
    steps.did(Action.DOORBELL);
    int tail = q.rung.get(s);
    for (int n = q.tail[t].get(s); n > 0; n--) {
      if (q.sq[Math.floorMod(tail - n, config.sqSize)].get(s) == 0) {
        throw new Violation("the doorbell announces an SQE that is not written");
      }
    }
    q.tail[t].set(s, 0);
    q.doorbell.set(s, tail % config.sqSize);
    rang(s, t);
  }

  private void rang(long[] s, int t) {
    q.go(s, t, config.has(Flaw.CLEAR_AFTER_SCAN) ? Pc.CLEAR : completions(s, t));
  }

  void clearLate(long[] s, int t, Steps steps) {
    steps.did(Action.CLEAR);
    q.service.set(s, QueueState.LOCKED);
    q.go(s, t, completions(s, t));
  }

  private Pc completions(long[] s, int t) {
    return q.round[t].get(s) >= config.rounds ? Pc.LEAVE : Pc.LOOK;
  }

  // ---- completion pass

  /** Reads the CQEs that are there, as many as the holder has lanes. They stay until given back. */
  void look(long[] s, int t, Steps steps) {
    if (config.has(Flaw.CID_BEFORE_PHASE) || config.has(Flaw.CQ_DOORBELL_BEFORE_READ)) {
      if (q.cqeStep[t][0].get(s) == CqeStep.NONE.ordinal()) {
        lookHalf(s, t, steps);
        return;
      }
    }
    int n = 0;
    while (n < config.window && hasArrived(s, q.head.get(s))) {
      take(s, t, n);
      n++;
    }
    if (n == 0) {
      steps.did(Action.NO_CQE);
      put(s, t, 0, CqeStep.NONE);
      q.go(s, t, Pc.LEAVE);
    } else {
      steps.did(Action.LOOK);
      q.go(s, t, Pc.DELIVER);
    }
  }

  private boolean hasArrived(long[] s, int position) {
    int lap = config.has(Flaw.PHASE_NOT_FLIPPED) ? 0 : position / config.cqSize;
    return q.cqPhase[position % config.cqSize].get(s) == (~lap & 1);
  }

  private void take(long[] s, int t, int lane) {
    Field entry = q.cq[q.head.get(s) % config.cqSize];
    int command = config.has(Flaw.CID_BEFORE_PHASE) ? q.cqe[t][lane].get(s) : entry.get(s);
    if (command == 0) {
      throw new Violation("a CQE is consumed that is not there");
    }
    q.cqe[t][lane].set(s, command);
    entry.set(s, 0);
    q.head.advance(s, 1);
    put(s, t, lane, CqeStep.DELIVER);
  }

  private void lookHalf(long[] s, int t, Steps steps) {
    steps.did(Action.LOOK);
    int head = q.head.get(s);
    if (config.has(Flaw.CID_BEFORE_PHASE)) {
      q.cqe[t][0].set(s, q.cq[head % config.cqSize].get(s));
    } else {
      int n = 0;
      while (n < config.window && hasArrived(s, head + n)) {
        n++;
      }
      q.cqDoorbell.set(s, head + n);
      q.givenBack.set(s, head + n);
    }
    put(s, t, 0, CqeStep.HALF);
  }

  /** The lanes of the holder hand out their CQEs side by side. */
  void deliver(long[] from, int t, Steps steps) {
    for (int lane = 0; lane < config.window; lane++) {
      if (q.cqeStep[t][lane].get(from) != CqeStep.NONE.ordinal()) {
        long[] s = steps.begin(t);
        deliver(s, t, lane, steps);
        steps.end();
      }
    }
  }

  /** The next step of one lane. */
  void deliver(long[] s, int t, int lane, Steps steps) {
    int c = q.cqe[t][lane].get(s) - 1;
    int at = q.commandSlot[c].get(s);
    CqeStep next =
        switch (CqeStep.values()[q.cqeStep[t][lane].get(s)]) {
          case DELIVER -> complete(s, at, c, steps);
          case LATE_WORD -> lateWord(s, at, c, steps);
          default -> lateBit(s, at, steps);
        };
    put(s, t, lane, next);
    if (next == CqeStep.NONE) {
      q.cqe[t][lane].set(s, 0);
    }
    for (Field step : q.cqeStep[t]) {
      if (step.get(s) != CqeStep.NONE.ordinal()) {
        return;
      }
    }
    boolean give = q.cqes(s, q.givenBack, q.head) >= config.cqBatch();
    q.go(s, t, give && !config.has(Flaw.CQ_DOORBELL_FORGOTTEN) ? Pc.CQ_DOORBELL : Pc.LOOK);
  }

  /** Compare-and-swap IN_FLIGHT with this CID by DONE. */
  private CqeStep complete(long[] s, int at, int c, Steps steps) {
    boolean cid = q.hasCid(s, at, c) || config.has(Flaw.DELIVER_TO_ANY_GENERATION);
    boolean late = cid && q.is(s, at, Slot.QUARANTINED);
    if (cid && q.is(s, at, Slot.IN_FLIGHT) || late && config.has(Flaw.DELIVER_BY_STORE)) {
      steps.did(Action.DELIVER);
      if (q.slotCommand[at].get(s) != c + 1) {
        throw new Violation("the completion of command " + c + " goes to another");
      }
      q.put(s, at, Slot.DONE);
      q.consumed[c].set(s, 1);
      return CqeStep.NONE;
    }
    if (!late) {
      return stale(s, c, steps);
    }
    steps.did(Action.LATE);
    return config.has(Flaw.LATE_BIT_BEFORE_WORD) ? CqeStep.LATE_BIT : CqeStep.LATE_WORD;
  }

  private CqeStep stale(long[] s, int c, Steps steps) {
    steps.did(Action.STALE);
    if (q.consumed[c].get(s) == 0) {
      throw new Violation("the only completion of command " + c + " is taken for a double");
    }
    return CqeStep.NONE;
  }

  /** Compare-and-swap QUARANTINED with this CID by FREE: of two lanes one succeeds. */
  private CqeStep lateWord(long[] s, int at, int c, Steps steps) {
    boolean mine = q.is(s, at, Slot.QUARANTINED) && q.hasCid(s, at, c);
    if (!mine && config.flaw != Flaw.LATE_BY_STORE && config.flaw != Flaw.LATE_BIT_BEFORE_WORD) {
      return stale(s, c, steps);
    }
    steps.did(Action.LATE_WORD);
    q.consumed[c].set(s, 1);
    if (config.has(Flaw.LATE_SLOT_KEPT)) {
      return CqeStep.NONE;
    }
    q.put(s, at, Slot.FREE);
    q.slotCommand[at].set(s, 0);
    return config.has(Flaw.LATE_BIT_BEFORE_WORD) ? CqeStep.NONE : CqeStep.LATE_BIT;
  }

  private CqeStep lateBit(long[] s, int at, Steps steps) {
    steps.did(Action.LATE_BIT);
    q.setFree(s, at);
    return config.has(Flaw.LATE_BIT_BEFORE_WORD) ? CqeStep.LATE_WORD : CqeStep.NONE;
  }

  private void put(long[] s, int t, int lane, CqeStep step) {
    q.cqeStep[t][lane].set(s, step.ordinal());
  }

  void cqDoorbell(long[] s, int t, Steps steps) {
    steps.did(Action.CQ_DOORBELL);
    q.cqDoorbell.set(s, q.head.get(s));
    q.givenBack.set(s, q.head.get(s));
    q.go(s, t, Pc.LOOK);
  }

  // ---- leaving

  /** Compare-and-swap of the word without PENDING: fails if somebody has set PENDING. */
  void leave(long[] s, int t, Steps steps) {
    int service = q.service.get(s);
    if (config.has(Flaw.LEAVE_BY_STORE) || service == QueueState.LOCKED) {
      left(s, t, 0, Action.LEAVE, steps);
    } else if (config.has(Flaw.LEAVE_WITHOUT_LOOKING)) {
      left(s, t, service & ~QueueState.LOCKED, Action.LEAVE, steps);
    } else {
      steps.did(Action.TOLD);
      q.go(s, t, Pc.AGAIN);
    }
  }

  /** Compare-and-swap of the word with PENDING, which nobody else clears. */
  void again(long[] s, int t, Steps steps) {
    int round = q.round[t].get(s) + 1;
    if (round >= config.rounds && config.leaving == Leaving.WITH_PENDING) {
      left(s, t, QueueState.PENDING, Action.LEAVE_PENDING, steps);
      return;
    }
    if (round > config.mostRounds()) {
      throw new Violation("the holder does not come to an end");
    }
    steps.did(Action.AGAIN);
    q.round[t].set(s, round);
    overtaken(s, t, steps);
    enter(s, t, Back.values()[q.back[t].get(s)]);
  }

  private void left(long[] s, int t, int word, Action how, Steps steps) {
    steps.did(how);
    q.service.set(s, word);
    q.round[t].set(s, 0);
    q.go(s, t, Pc.AFTERWARDS);
  }

  /** Without a release before it left, the holder's doorbell is still under way. */
  void overtaken(long[] s, int t, Steps steps) {
    int tail = q.tail[t].get(s);
    if (tail != 0) {
      steps.did(Action.DOORBELL);
      q.tail[t].set(s, 0);
      q.doorbell.set(s, tail % config.sqSize);
    }
  }
}
