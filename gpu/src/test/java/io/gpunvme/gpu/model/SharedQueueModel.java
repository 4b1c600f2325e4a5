package io.gpunvme.gpu.model;

import io.gpunvme.gpu.model.QueueConfig.Deadlines;
import io.gpunvme.gpu.model.QueueConfig.Leaving;
import io.gpunvme.gpu.model.QueueState.Outcome;
import io.gpunvme.gpu.model.QueueState.Slot;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The shared queue with its callers, its controller and its host, and what must hold in every
 * state. What must hold at a step is checked there, by a {@link Violation}.
 */
class SharedQueueModel implements Model {
  private final QueueConfig config;
  private final QueueState q;
  private final int callers;
  private final Caller caller;
  private final Controller controller;
  private final Host host;
  private final LiveRecovery live;

  SharedQueueModel(QueueConfig config) {
    this.config = config;
    this.q = new QueueState(config);
    this.callers = config.programs.size();
    this.caller = new Caller(config, q);
    this.controller = new Controller(config, q, callers);
    this.host = new Host(config, q, caller, callers + 1);
    this.live = caller.live();
  }

  @Override
  public int words() {
    return q.layout.words();
  }

  @Override
  public void start(long[] state) {
    host.start(state);
    for (int t = 0; t < callers; t++) {
      caller.start(state, t);
    }
  }

  @Override
  public void steps(long[] from, Steps steps) {
    for (int t = 0; t < callers; t++) {
      caller.steps(from, t, steps);
    }
    controller.steps(from, steps);
    host.steps(from, steps);
    live.host(from, callers + 1, steps);
  }

  @Override
  public void settle(long[] to, int actor, Steps steps) {
    if (actor < callers) {
      caller.settle(to, actor, steps);
    }
  }

  @Override
  public boolean isOver(long[] state) {
    for (int t = 0; t < callers; t++) {
      if (q.pc(state, t) != Pc.END) {
        return false;
      }
    }
    return true;
  }

  @Override
  public @Nullable String violation(long[] s) {
    int holders = live.holds(s) ? 1 : 0;
    for (int t = 0; t < callers; t++) {
      holders += q.pc(s, t).holds() ? 1 : 0;
    }
    if (holders > 1) {
      return "there are two holders";
    }
    for (int at = 0; at < config.depth; at++) {
      if (q.is(s, at, Slot.QUARANTINED) && q.consumed[q.slotCommand[at].get(s) - 1].get(s) != 0) {
        return "slot " + at + " stays quarantined although its completion was consumed";
      }
    }
    if (isOver(s)) {
      return leak(s);
    }
    return holders == 0 ? forgotten(s) : null;
  }

  /** When all callers are gone, a slot is free or quarantined. */
  private @Nullable String leak(long[] s) {
    for (int at = 0; at < config.depth; at++) {
      boolean free = (q.free.get(s) >> at & 1) != 0;
      if (free
          ? !q.is(s, at, Slot.FREE) && !q.is(s, at, Slot.DONE) && !q.is(s, at, Slot.ABORTED)
          : !q.is(s, at, Slot.QUARANTINED)) {
        return "slot " + at + " is lost";
      }
    }
    for (int c = 0; c < config.commands; c++) {
      if (q.is(s, c, Outcome.NONE)) {
        return "command " + c + " has no outcome";
      }
    }
    return null;
  }

  /**
   * A caller that has announced may go away: the command must be known to the controller as soon as
   * nobody holds the service word, unless an earlier position is not marked yet or belongs to a
   * caller that announces or serves later.
   */
  private @Nullable String forgotten(long[] s) {
    if (q.service.get(s) == QueueState.PENDING && !nobodyIsInACall(s)) {
      boolean allowed = config.leaving == Leaving.WITH_PENDING || somebodyIsTakingTheWord(s);
      return allowed ? null : "PENDING is left behind";
    }
    if (q.gate.get(s) != 0) {
      return null;
    }
    if (config.hasServer() && nobodyIsInACall(s) && q.unrung(s) != 0) {
      return "nobody rings for what is left";
    }
    boolean quiet = !config.readsAnnounce && config.deadlines != Deadlines.NEVER;
    for (int i = 0; i < q.unrung(s); i++) {
      int p = q.rung.get(s) + i;
      int c = q.sq[p % config.sqSize].get(s) - 1;
      if (c < 0 || !caller.service().isMarked(s, p)) {
        return null;
      }
      if (q.announced[c].get(s) != 0) {
        return "nobody rings for command " + c + ", which was announced";
      }
      if (quiet || q.is(s, c, Outcome.NONE)) {
        return null;
      }
    }
    return null;
  }

  /** True if a caller has set PENDING and goes on to take the word, which is still the same. */
  private boolean somebodyIsTakingTheWord(long[] s) {
    for (int t = 0; t < callers; t++) {
      Pc pc = q.pc(s, t);
      if ((pc == Pc.HOLD || pc == Pc.LAST_HOLD)
          && q.seenRung[t].get(s) == q.rung.get(s)
          && q.seenHead[t].get(s) == q.head.get(s)) {
        return true;
      }
    }
    return false;
  }

  private boolean nobodyIsInACall(long[] s) {
    for (int t = 0; t < callers; t++) {
      Pc pc = q.pc(s, t);
      if (pc != Pc.RECOVER && pc != Pc.END) {
        return false;
      }
    }
    return true;
  }

  /** What each command has come to, for a state that is over. */
  List<Outcome> outcomes(long[] s) {
    List<Outcome> all = new ArrayList<>();
    for (Field outcome : q.outcome) {
      all.add(Outcome.values()[outcome.get(s)]);
    }
    return all;
  }

  @Override
  public String actor(int actor) {
    return actor < callers ? "caller " + actor : actor == callers ? "controller" : "host";
  }

  @Override
  public String difference(long[] from, long[] to) {
    return q.layout.difference(from, to);
  }
}
