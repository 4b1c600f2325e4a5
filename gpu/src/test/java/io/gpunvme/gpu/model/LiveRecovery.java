package io.gpunvme.gpu.model;

import io.gpunvme.gpu.model.QueueState.Back;
import io.gpunvme.gpu.model.QueueState.Live;
import io.gpunvme.gpu.model.QueueState.Slot;
import io.gpunvme.gpu.model.QueueState.Stage;
import java.util.List;

/**
 * Recovery while callers use the queue: they pause, the host makes the queue pair anew, or another
 * one of the same SSD, and they go on.
 */
final class LiveRecovery {
  private final QueueConfig config;
  private final QueueState q;
  private final Service service;

  LiveRecovery(QueueConfig config, QueueState q, Service service) {
    this.config = config;
    this.q = q;
    this.service = service;
  }

  // ---- the host's part

  void host(long[] from, int host, Steps steps) {
    if (q.is(from, Live.RUNS) && q.liveLeft.get(from) > 0) {
      long[] s = steps.begin(host);
      steps.did(Action.ASK);
      q.liveLeft.add(s, -1);
      q.put(s, Live.ASKED);
      steps.end();
    }
    boolean early = config.has(Flaw.LIVE_WITHOUT_PAUSE) && q.is(from, Live.ASKED);
    if (q.is(from, Live.PAUSED) || early) {
      makeAnew(from, host, steps);
      long[] s = steps.begin(host);
      steps.did(Action.KEEP);
      q.put(s, Live.MADE);
      q.fresh.set(s, 0);
      steps.end();
    }
  }

  /** The controller forgets the rings: they are empty, and it begins at their first entries. */
  private void makeAnew(long[] from, int host, Steps steps) {
    long[] s = steps.begin(host);
    steps.did(Action.MAKE_ANEW);
    for (int at = 0; at < config.depth; at++) {
      if (q.is(s, at, Slot.IN_FLIGHT) || q.is(s, at, Slot.QUARANTINED)) {
        q.put(s, q.slotCommand[at].get(s) - 1, Stage.GONE);
      }
    }
    for (int c = 0; c < config.commands; c++) {
      if (!q.is(s, c, Stage.NEW)) {
        q.put(s, c, Stage.GONE);
      }
    }
    for (List<Field> fields : List.of(List.of(q.sq), List.of(q.cq), List.of(q.cqPhase))) {
      fields.forEach(f -> f.set(s, 0));
    }
    q.doorbell.set(s, 0);
    q.fetched.set(s, firstPosition(s));
    for (Field f : List.of(q.posted, q.cqDoorbell)) {
      f.set(s, firstCqPosition(s));
    }
    q.fresh.set(s, 1);
    q.put(s, Live.MADE);
    steps.end();
  }

  // ---- the callers' part

  /** A caller that waits, or serves, may do the next step if nobody else is at it. */
  void offer(long[] from, int t, Back back, Steps steps) {
    boolean second = config.has(Flaw.LIVE_TWO_AT_ONCE) && q.is(from, Live.RESUMING);
    boolean pauses = q.is(from, Live.ASKED);
    if (!pauses && !q.is(from, Live.MADE) && !second) {
      return;
    }
    long[] s = steps.begin(t);
    steps.did(Action.ATTEND);
    q.put(s, pauses ? Live.PAUSING : Live.RESUMING);
    q.back[t].set(s, back.ordinal());
    q.go(s, t, pauses ? Pc.PAUSE_LOCK : q.fresh.get(s) != 0 ? Pc.RESUME_SLOT : Pc.RESUME_RING);
    steps.end();
  }

  void steps(long[] from, int t, Pc pc, Steps steps) {
    if (pc == Pc.PAUSE_LOCK && q.hasService(from, QueueState.LOCKED) && !unlocked()
        || pc == Pc.PAUSE_MARKS && !allAreMarked(from, t)) {
      return;
    }
    long[] s = steps.begin(t);
    switch (pc) {
      case PAUSE_LOCK -> lock(s, t, steps);
      case PAUSE_GATE -> closeGate(s, t);
      case PAUSE_MARKS -> end(s, t, Live.PAUSED);
      case RESUME_SLOT -> slot(s, t, steps);
      case RESUME_STORE -> abortLate(s, t, steps);
      case RESUME_FREE -> free(s, t, steps);
      case RESUME_BIT -> freeBit(s, t);
      case RESUME_WORD -> word(s, t);
      case RESUME_RING -> ring(s, t, steps);
      case RESUME_UNLOCK -> unlock(s, t);
      case RESUME_GATE -> openGate(s, t, steps);
      case RESUME_END -> end(s, t, Live.RUNS);
      default -> throw new AssertionError(pc);
    }
    steps.end();
  }

  private boolean unlocked() {
    return config.has(Flaw.LIVE_UNLOCKED);
  }

  private void lock(long[] s, int t, Steps steps) {
    steps.did(Action.PAUSE);
    if (!unlocked()) {
      q.service.set(s, q.service.get(s) | QueueState.LOCKED);
    }
    q.go(s, t, Pc.PAUSE_GATE);
  }

  private void closeGate(long[] s, int t) {
    q.gate.set(s, config.has(Flaw.LIVE_GATE_OPEN) ? 0 : 1);
    q.base[t].set(s, q.ticket.get(s));
    q.go(s, t, Pc.PAUSE_MARKS);
  }

  private boolean allAreMarked(long[] s, int t) {
    if (config.has(Flaw.LIVE_MARKS_NOT_AWAITED)) {
      return true;
    }
    int rung = q.rung.get(s);
    int n = Math.floorMod(q.base[t].get(s) - rung, config.positions());
    for (int i = 0; i < n; i++) {
      if (!service.isMarked(s, rung + i)) {
        return false;
      }
    }
    return true;
  }

  /** Compare-and-swap of what is in flight; its owner may quarantine it at the same moment. */
  private void slot(long[] s, int t, Steps steps) {
    int at = q.lane[t].get(s);
    if (q.is(s, at, Slot.IN_FLIGHT)) {
      if (config.has(Flaw.LIVE_ABORT_BY_STORE)) {
        q.go(s, t, Pc.RESUME_STORE);
        return;
      }
      steps.did(Action.ABORT);
      q.put(s, at, Slot.ABORTED);
      nextSlot(s, t);
    } else if (q.is(s, at, Slot.QUARANTINED)) {
      q.go(s, t, Pc.RESUME_FREE);
    } else {
      nextSlot(s, t);
    }
  }

  /** Too late: see {@link Flaw#LIVE_ABORT_BY_STORE}. */
  private void abortLate(long[] s, int t, Steps steps) {
    steps.did(Action.ABORT);
    q.put(s, q.lane[t].get(s), Slot.ABORTED);
    nextSlot(s, t);
  }

  private void free(long[] s, int t, Steps steps) {
    steps.did(Action.BACK);
    int at = q.lane[t].get(s);
    q.put(s, at, Slot.FREE);
    q.slotCommand[at].set(s, 0);
    q.go(s, t, Pc.RESUME_BIT);
  }

  private void freeBit(long[] s, int t) {
    q.setFree(s, q.lane[t].get(s));
    nextSlot(s, t);
  }

  private void nextSlot(long[] s, int t) {
    int next = q.lane[t].get(s) + 1;
    q.lane[t].set(s, next == config.depth ? 0 : next);
    q.go(s, t, next == config.depth ? Pc.RESUME_WORD : Pc.RESUME_SLOT);
  }

  /** Positions go on from the first entries of both rings, and no mark is left. */
  private void word(long[] s, int t) {
    q.rung.set(s, firstPosition(s));
    int head = firstCqPosition(s);
    q.head.set(s, head);
    q.givenBack.set(s, head);
    if (!config.has(Flaw.LIVE_KEEPS_MARKS)) {
      for (Field mark : q.marks) {
        mark.set(s, 0);
      }
    }
    q.go(s, t, Pc.RESUME_RING);
  }

  /** What was marked and not announced, by callers that found the word LOCKED. */
  private void ring(long[] s, int t, Steps steps) {
    int rung = q.rung.get(s);
    int n = marked(s);
    if (n > 0 && !config.has(Flaw.LIVE_UNRUNG)) {
      steps.did(Action.RING);
      for (int i = 0; i < n; i++) {
        if (q.sq[(rung + i) % config.sqSize].get(s) == 0) {
          throw new Violation("the doorbell announces an SQE that is not written");
        }
      }
      q.rung.advance(s, n);
      q.doorbell.set(s, q.rung.get(s) % config.sqSize);
    }
    q.base[t].set(s, (rung + n) % config.positions());
    q.go(s, t, config.has(Flaw.LIVE_GATE_FIRST) ? Pc.RESUME_GATE : Pc.RESUME_UNLOCK);
  }

  /** An exchange: PENDING is forgotten, as nothing was marked since. */
  private void unlock(long[] s, int t) {
    q.service.set(s, 0);
    q.go(s, t, config.has(Flaw.LIVE_GATE_FIRST) ? Pc.RESUME_END : Pc.RESUME_GATE);
  }

  private void openGate(long[] s, int t, Steps steps) {
    steps.did(Action.RESUME);
    q.gate.set(s, 0);
    q.ticket.set(s, q.base[t].get(s));
    q.base[t].set(s, 0);
    q.go(s, t, config.has(Flaw.LIVE_GATE_FIRST) ? Pc.RESUME_UNLOCK : Pc.RESUME_END);
  }

  private void end(long[] s, int t, Live phase) {
    q.put(s, phase);
    Back back = Back.values()[q.back[t].get(s)];
    q.back[t].set(s, 0);
    q.base[t].set(s, 0);
    q.go(
        s,
        t,
        switch (back) {
          case TAKE -> Pc.TAKE;
          case WAIT -> Pc.WAIT;
          case SERVE -> Pc.SERVE;
          default -> throw new AssertionError(back);
        });
  }

  /** Whether the service word is the pause's own: nobody else rings or reaps. */
  boolean holds(long[] s) {
    return !unlocked() && (q.is(s, Live.PAUSED) || q.is(s, Live.MADE));
  }

  private int marked(long[] s) {
    int n = 0;
    while (service.isMarked(s, q.rung.get(s) + n)) {
      n++;
    }
    return n;
  }

  private int firstPosition(long[] s) {
    return roundUp(q.rung.get(s) + marked(s), config.sqSize) % config.positions();
  }

  private int firstCqPosition(long[] s) {
    return roundUp(q.head.get(s), 2 * config.cqSize) % config.cqPositions();
  }

  private static int roundUp(int n, int step) {
    return Math.ceilDiv(n, step) * step;
  }
}
