package io.gpunvme.gpu.model;

import io.gpunvme.gpu.model.QueueState.Slot;
import io.gpunvme.gpu.model.QueueState.Stage;
import java.util.List;

/**
 * Recovers the queue while nobody drives it: the controller's queues are deleted and made again.
 */
final class Host {
  private final QueueConfig config;
  private final QueueState q;
  private final Caller caller;
  private final int me;

  Host(QueueConfig config, QueueState q, Caller caller, int me) {
    this.config = config;
    this.q = q;
    this.caller = caller;
    this.me = me;
  }

  /** The start of the world: all slots free. */
  void start(long[] s) {
    q.free.set(s, (1 << config.depth) - 1);
    q.drops.set(s, config.drops);
    q.duplicates.set(s, config.duplicates);
    q.early.set(s, config.early);
    q.liveLeft.set(s, config.live);
    if (config.wrap != 0) {
      wind(s);
    }
  }

  /** As commands before these left the rings: marks and phases of their laps, nothing in flight. */
  private void wind(long[] s) {
    int position = (config.tickets() - config.before) % config.tickets();
    q.ticket.set(s, position);
    q.rung.set(s, position % config.positions());
    q.fetched.set(s, position);
    q.doorbell.set(s, position % config.sqSize);
    for (int back = config.sqSize; back > 0; back--) {
      int p = Math.floorMod(position - back, config.tickets());
      q.marks[p % config.sqSize].set(s, config.lap(p));
    }
    int cq = (config.cqPositions() - config.before) % config.cqPositions();
    for (Field f : List.of(q.head, q.givenBack, q.posted, q.cqDoorbell)) {
      f.set(s, cq);
    }
    for (int back = config.cqSize; back > 0; back--) {
      int p = Math.floorMod(cq - back, config.cqPositions());
      q.cqPhase[p % config.cqSize].set(s, ~(p / config.cqSize) & 1);
    }
  }

  void steps(long[] from, Steps steps) {
    boolean wanted = false;
    for (int t = 0; t < config.programs.size(); t++) {
      Pc pc = q.pc(from, t);
      wanted |= pc == Pc.RECOVER;
      if (pc != Pc.RECOVER && pc != Pc.END) {
        return;
      }
    }
    if (wanted) {
      long[] s = steps.begin(me);
      steps.did(Action.RECOVER);
      forgetCommands(s);
      clearQueue(s);
      for (int t = 0; t < config.programs.size(); t++) {
        if (q.pc(s, t) == Pc.RECOVER) {
          caller.goOn(s, t);
        }
      }
      steps.end();
    }
  }

  private void forgetCommands(long[] s) {
    for (int at = 0; at < config.depth; at++) {
      if (!q.is(s, at, Slot.FREE)) {
        q.put(s, q.slotCommand[at].get(s) - 1, Stage.GONE);
      }
    }
    for (int c = 0; c < config.commands; c++) {
      if (!q.is(s, c, Stage.NEW)) {
        q.put(s, c, Stage.GONE);
      }
      q.announced[c].set(s, 0);
    }
  }

  private void clearQueue(long[] s) {
    q.free.set(s, (1 << config.depth) - 1);
    for (int at = 0; at < config.depth; at++) {
      if (!config.has(Flaw.RECOVERY_KEEPS_RESULTS) || !q.is(s, at, Slot.DONE)) {
        q.put(s, at, Slot.FREE);
        q.slotCommand[at].set(s, 0);
      }
      if (config.has(Flaw.RECOVERY_RESETS_GENERATIONS)) {
        q.slotGeneration[at].set(s, 0);
      }
    }
    zero(s, q.gate, q.live, q.fresh);
    zero(s, q.ticket, q.service, q.rung, q.head, q.givenBack);
    zero(s, q.doorbell, q.cqDoorbell, q.fetched, q.posted);
    zero(s, q.sq);
    zero(s, q.cq);
    zero(s, q.cqPhase);
    if (!config.has(Flaw.RECOVERY_KEEPS_MARKS)) {
      zero(s, q.marks);
    }
  }

  private static void zero(long[] s, Field... fields) {
    for (Field f : fields) {
      f.set(s, 0);
    }
  }
}
