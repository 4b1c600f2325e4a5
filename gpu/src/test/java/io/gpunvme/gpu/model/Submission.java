package io.gpunvme.gpu.model;

import io.gpunvme.gpu.model.QueueState.Outcome;
import io.gpunvme.gpu.model.QueueState.Slot;
import java.util.List;

/** How lanes get slots, write their commands and announce them. */
final class Submission {
  private final QueueConfig config;
  private final QueueState q;
  private final Service service;
  private final LiveRecovery live;
  private final List<Pc> order;

  Submission(QueueConfig config, QueueState q, Service service, LiveRecovery live) {
    this.config = config;
    this.q = q;
    this.service = service;
    this.live = live;
    this.order =
        switch (config.flaw) {
          case TICKET_BEFORE_SLOT ->
              List.of(Pc.TICKET, Pc.TAKE, Pc.WORD, Pc.SQE, Pc.MARK, Pc.ANNOUNCE);
          case MARK_BEFORE_SQE ->
              List.of(Pc.TAKE, Pc.TICKET, Pc.WORD, Pc.MARK, Pc.SQE, Pc.ANNOUNCE);
          case ANNOUNCE_BEFORE_MARK ->
              List.of(Pc.TAKE, Pc.TICKET, Pc.WORD, Pc.SQE, Pc.ANNOUNCE, Pc.MARK);
          default -> List.of(Pc.TAKE, Pc.TICKET, Pc.WORD, Pc.SQE, Pc.MARK, Pc.ANNOUNCE);
        };
  }

  /** Begins the next call of a caller, or ends the caller. */
  void nextOp(long[] s, int t, int index) {
    q.op[t].set(s, index);
    List<Op> program = config.programs.get(t);
    if (index == program.size()) {
      q.go(s, t, Pc.END);
      return;
    }
    Op op = program.get(index);
    switch (op.kind()) {
      case READ, SUBMIT -> {
        q.pending[t].set(s, (1 << op.lanes()) - 1);
        q.go(s, t, order.getFirst());
      }
      case WAIT -> waitFor(s, t, op);
      case ADOPT -> q.go(s, t, Pc.ADOPT);
      case SERVE -> q.go(s, t, Pc.SERVE);
      case RECOVER -> q.go(s, t, Pc.RECOVER);
    }
  }

  /** Once the call that submits it has returned. */
  void adopt(long[] from, int t, Steps steps) {
    Op op = op(from, t);
    for (int other = 0; other < config.programs.size(); other++) {
      int at = config.programs.get(other).indexOf(new Op(Op.Kind.SUBMIT, op.first(), op.lanes()));
      if (at >= 0 && q.op[other].get(from) > at) {
        long[] s = steps.begin(t);
        steps.did(Action.ADOPT);
        waitFor(s, t, op);
        steps.end();
      }
    }
  }

  private void waitFor(long[] s, int t, Op op) {
    int mine = 0;
    for (int lane = 0; lane < op.lanes(); lane++) {
      mine |= q.is(s, op.first() + lane, Outcome.NONE) ? 1 << lane : 0;
    }
    q.mine[t].set(s, mine);
    if (mine == 0) {
      nextOp(s, t, q.op[t].get(s) + 1);
    } else {
      q.go(s, t, Pc.WAIT);
    }
  }

  /** A turn, or the end of turns once nobody is left who depends on them. */
  void serve(long[] from, int t, Steps steps) {
    service.offer(from, t, QueueState.Back.SERVE, steps);
    live.offer(from, t, QueueState.Back.SERVE, steps);
    if (nobodyIsLeft(from) || config.has(Flaw.SERVER_LEAVES_EARLY)) {
      long[] s = steps.begin(t);
      if (config.has(Flaw.NO_LAST_TURN)) {
        served(s, t, steps);
      } else {
        steps.did(Action.LAST);
        q.go(s, t, Pc.LAST_TURN);
      }
      steps.end();
    }
  }

  /** As {@link #announce}. */
  void lastTurn(long[] s, int t, Steps steps) {
    boolean held = q.hasService(s, QueueState.LOCKED);
    if (!config.has(Flaw.LAST_TURN_WITHOUT_PENDING)) {
      q.service.set(s, q.service.get(s) | QueueState.PENDING);
    }
    if (held) {
      steps.did(Action.TELL);
      served(s, t, steps);
    } else {
      steps.did(Action.ANNOUNCE);
      seeUnlocked(s, t, Pc.LAST_HOLD);
    }
  }

  /** As {@link #hold}. */
  void lastHold(long[] s, int t, Steps steps) {
    int seen = config.has(Flaw.LAST_TURN_WITHOUT_PENDING) ? 0 : QueueState.PENDING;
    if (isAsSeen(s, t, seen)) {
      steps.did(Action.HOLD);
      service.enter(s, t, QueueState.Back.LAST_TURN);
    } else {
      steps.did(Action.TOO_LATE);
      served(s, t, steps);
    }
  }

  void served(long[] s, int t, Steps steps) {
    steps.did(Action.END);
    nextOp(s, t, q.op[t].get(s) + 1);
  }

  /** Only callers that do not help are counted. */
  private boolean nobodyIsLeft(long[] s) {
    for (int t = 0; t < config.programs.size(); t++) {
      if (!config.helps(t) && !hasLeft(s, t)) {
        return false;
      }
    }
    return true;
  }

  private boolean hasLeft(long[] s, int t) {
    Pc pc = q.pc(s, t);
    if (pc == Pc.MARK && config.has(Flaw.LEFT_BEFORE_MARK)) {
      List<Op> program = config.programs.get(t);
      int next = q.op[t].get(s) + 1;
      return next == program.size() || program.get(next).kind() == Op.Kind.RECOVER;
    }
    return pc == Pc.RECOVER || pc == Pc.END;
  }

  /** atomicAnd on the set of free slots: as many lanes as it reaches for, or fewer, go ahead. */
  void take(long[] from, int t, Steps steps) {
    int open = q.free.get(from);
    if (config.has(Flaw.TAKE_NOT_ATOMIC) && (open != 0 || q.todo[t].get(from) != 0)) {
      takeInTwo(from, t, steps, open);
      return;
    }
    int most = Math.min(Integer.bitCount(open), Integer.bitCount(q.pending[t].get(from)));
    for (int n = 1; n <= most; n++) {
      long[] s = steps.begin(t);
      steps.did(Action.TAKE);
      for (int i = 0; i < n; i++) {
        assign(s, t, Integer.numberOfTrailingZeros(q.free.get(s)));
      }
      boolean wait = config.has(Flaw.GROUP_TAKES_ALL_FIRST) && q.pending[t].get(s) != 0;
      if (!wait) {
        after(s, t, Pc.TAKE);
      }
      steps.end();
    }
    meanwhile(from, t, steps);
  }

  /** A lane that got no slot may serve, or give up; by then there may be free slots again. */
  private void meanwhile(long[] from, int t, Steps steps) {
    if (config.helps(t) && !config.has(Flaw.TAKER_DOES_NOT_SERVE)) {
      service.offer(from, t, QueueState.Back.TAKE, steps);
      live.offer(from, t, QueueState.Back.TAKE, steps);
    }
    if (mayGiveUp(from)) {
      giveUp(from, t, steps);
    }
  }

  private void takeInTwo(long[] from, int t, Steps steps, int open) {
    long[] s = steps.begin(t);
    if (q.todo[t].get(s) == 0) {
      q.todo[t].set(s, 1 + Integer.numberOfTrailingZeros(open));
    } else {
      steps.did(Action.TAKE);
      assign(s, t, q.todo[t].get(s) - 1);
      after(s, t, Pc.TAKE);
    }
    steps.end();
  }

  private void assign(long[] s, int t, int at) {
    int lane = Integer.numberOfTrailingZeros(q.pending[t].get(s));
    q.free.set(s, q.free.get(s) & ~(1 << at));
    q.pending[t].set(s, q.pending[t].get(s) & ~(1 << lane));
    q.batch[t].set(s, q.batch[t].get(s) | 1 << lane);
    q.commandSlot[command(s, t, lane)].set(s, at);
  }

  private boolean mayGiveUp(long[] s) {
    if (config.deadlines != QueueConfig.Deadlines.WHEN_LOST) {
      return config.deadlines == QueueConfig.Deadlines.ANY;
    }
    for (int at = 0; at < config.depth; at++) {
      if (!q.is(s, at, Slot.QUARANTINED) || !lookedForLate(s, at)) {
        return false;
      }
    }
    return true;
  }

  /** Who serves while it waits has looked for the completion; others must know that none comes. */
  private boolean lookedForLate(long[] s, int at) {
    return !config.has(Flaw.TAKER_DOES_NOT_SERVE)
        || q.is(s, q.slotCommand[at].get(s) - 1, QueueState.Stage.GONE);
  }

  private void giveUp(long[] from, int t, Steps steps) {
    long[] s = steps.begin(t);
    steps.did(Action.NO_SLOT);
    for (int lane = 0; lane < QueueState.LANES; lane++) {
      if ((q.pending[t].get(s) >> lane & 1) != 0) {
        q.tell(s, command(s, t, lane), Outcome.NO_SLOT);
      }
    }
    q.pending[t].set(s, 0);
    if (q.mine[t].get(s) != 0) {
      q.go(s, t, Pc.WAIT);
    } else {
      nextOp(s, t, q.op[t].get(s) + 1);
    }
    steps.end();
  }

  /** A new CID for the slot of one lane. */
  void word(long[] s, int t, Steps steps) {
    steps.did(Action.WORD);
    int lane = nextLane(s, t);
    int c = command(s, t, lane);
    int at = q.commandSlot[c].get(s);
    if (q.is(s, at, Slot.IN_FLIGHT) || q.is(s, at, Slot.QUARANTINED)) {
      throw new Violation("slot " + at + " is given to command " + c + " while another has it");
    }
    int step = config.has(Flaw.NO_GENERATION) ? 0 : 1;
    int generation = (q.slotGeneration[at].get(s) + step) % config.generations;
    q.slotGeneration[at].set(s, generation);
    q.generation[c].set(s, generation);
    q.slotCommand[at].set(s, c + 1);
    q.put(s, at, Slot.IN_FLIGHT);
    laneDone(s, t, lane, Pc.WORD);
  }

  /** atomicAdd on the ticket: the positions of all lanes that have slots. */
  void ticket(long[] s, int t, Steps steps) {
    steps.did(Action.TICKET);
    boolean early = config.has(Flaw.TICKET_BEFORE_SLOT);
    q.base[t].set(s, q.ticket.get(s));
    q.ticket.advance(s, Integer.bitCount(early ? q.pending[t].get(s) : q.batch[t].get(s)));
    if (q.gate.get(s) != 0) {
      q.base[t].set(s, 0);
      q.todo[t].set(s, q.batch[t].get(s));
      q.go(s, t, Pc.REFUSED);
    } else {
      after(s, t, Pc.TICKET);
    }
  }

  /** The slot of one lane is free again, and the lane tries again. */
  void refused(long[] s, int t, Steps steps) {
    steps.did(Action.REFUSED);
    int lane = nextLane(s, t);
    if (!config.has(Flaw.LIVE_REFUSED_KEEPS_SLOT)) {
      q.setFree(s, q.commandSlot[command(s, t, lane)].get(s));
    }
    q.todo[t].set(s, q.todo[t].get(s) & ~(1 << lane));
    if (q.todo[t].get(s) == 0) {
      q.pending[t].set(s, q.pending[t].get(s) | q.batch[t].get(s));
      q.batch[t].set(s, 0);
      waited(s, t);
    }
  }

  void sqe(long[] s, int t, Steps steps) {
    steps.did(Action.SQE);
    int lane = nextLane(s, t);
    Field entry = q.sq[position(s, t, lane) % config.sqSize];
    if (entry.get(s) != 0) {
      throw new Violation("an SQE is overwritten before the controller has fetched it");
    }
    entry.set(s, command(s, t, lane) + 1);
    laneDone(s, t, lane, Pc.SQE);
  }

  /** The marks of a group's lanes become visible in any order. */
  void mark(long[] from, int t, Steps steps) {
    for (int lane = 0; lane < QueueState.LANES; lane++) {
      if ((q.todo[t].get(from) >> lane & 1) != 0) {
        long[] s = steps.begin(t);
        steps.did(Action.MARK);
        int p = position(s, t, lane);
        q.marks[p % config.sqSize].set(s, config.lap(p));
        laneDone(s, t, lane, Pc.MARK);
        steps.end();
      }
    }
    if (config.has(Flaw.EXIT_BEFORE_MARK)) {
      exit(from, t, steps);
    }
  }

  private void exit(long[] from, int t, Steps steps) {
    long[] s = steps.begin(t);
    steps.did(Action.EXIT);
    int c = command(s, t, 0);
    q.tell(s, c, Outcome.TIMEOUT);
    q.put(s, q.commandSlot[c].get(s), Slot.QUARANTINED);
    q.batch[t].set(s, 0);
    q.todo[t].set(s, 0);
    q.base[t].set(s, 0);
    nextOp(s, t, q.op[t].get(s) + 1);
    steps.end();
  }

  /**
   * atomicOr(PENDING). If the word is LOCKED the holder will find PENDING before it leaves; else
   * the caller tries to take the word.
   */
  void announce(long[] s, int t, Steps steps) {
    for (int lane = 0; lane < QueueState.LANES; lane++) {
      if ((q.batch[t].get(s) >> lane & 1) != 0) {
        q.announced[command(s, t, lane)].set(s, 1);
      }
    }
    boolean held = q.hasService(s, QueueState.LOCKED);
    if (!held || !config.has(Flaw.ANNOUNCE_WITHOUT_PENDING)) {
      q.service.set(s, q.service.get(s) | QueueState.PENDING);
    }
    if (held) {
      steps.did(Action.TELL);
      after(s, t, Pc.ANNOUNCE);
    } else {
      steps.did(Action.ANNOUNCE);
      seeUnlocked(s, t, Pc.HOLD);
    }
  }

  private void seeUnlocked(long[] s, int t, Pc next) {
    q.seenRung[t].set(s, q.rung.get(s));
    q.seenHead[t].set(s, q.head.get(s));
    q.go(s, t, next);
  }

  /**
   * Compare-and-swap of the whole word. If it fails, somebody else has taken the word since, with
   * our PENDING in it, and reads the marks after that.
   */
  void hold(long[] s, int t, Steps steps) {
    if (isAsSeen(s, t, QueueState.PENDING)) {
      steps.did(Action.HOLD);
      service.enter(s, t, QueueState.Back.SUBMITTED);
    } else {
      steps.did(Action.TOO_LATE);
      after(s, t, Pc.ANNOUNCE);
    }
  }

  private boolean isAsSeen(long[] s, int t, int service) {
    boolean same =
        q.service.get(s) == service
            && q.rung.get(s) == q.seenRung[t].get(s)
            && q.head.get(s) == q.seenHead[t].get(s);
    q.seenRung[t].set(s, 0);
    q.seenHead[t].set(s, 0);
    return same;
  }

  /** Goes on behind one of the steps of a submission. */
  void after(long[] s, int t, Pc done) {
    int next = order.indexOf(done) + 1;
    boolean read = op(s, t).kind() == Op.Kind.READ;
    boolean quiet = !config.helps(t) || !config.readsAnnounce && read;
    if (next < order.size() && quiet && order.get(next) == Pc.ANNOUNCE) {
      next++;
    }
    if (next == order.size()) {
      submitted(s, t);
      return;
    }
    q.go(s, t, order.get(next));
    q.todo[t].set(
        s,
        switch (order.get(next)) {
          case WORD, SQE, MARK -> q.batch[t].get(s);
          default -> 0;
        });
  }

  private void submitted(long[] s, int t) {
    boolean wait = op(s, t).kind() == Op.Kind.READ;
    boolean more = q.pending[t].get(s) != 0;
    if (wait) {
      q.mine[t].set(s, q.mine[t].get(s) | q.batch[t].get(s));
    }
    q.batch[t].set(s, 0);
    q.base[t].set(s, 0);
    if (more && (!wait || config.has(Flaw.GROUP_SUBMITS_ALL_FIRST))) {
      q.go(s, t, order.getFirst());
    } else if (wait) {
      q.go(s, t, Pc.WAIT);
    } else {
      nextOp(s, t, q.op[t].get(s) + 1);
    }
  }

  /** Nobody of the group waits any more: lanes without a slot try again, or the call is over. */
  void waited(long[] s, int t) {
    if (q.mine[t].get(s) != 0) {
      q.go(s, t, Pc.WAIT);
    } else if (q.pending[t].get(s) != 0) {
      q.go(s, t, order.getFirst());
    } else {
      nextOp(s, t, q.op[t].get(s) + 1);
    }
  }

  int command(long[] s, int t, int lane) {
    return op(s, t).first() + lane;
  }

  private Op op(long[] s, int t) {
    return config.programs.get(t).get(q.op[t].get(s));
  }

  private int position(long[] s, int t, int lane) {
    int rank = Integer.bitCount(q.batch[t].get(s) & (1 << lane) - 1);
    return (q.base[t].get(s) + rank) % config.tickets();
  }

  private int nextLane(long[] s, int t) {
    return Integer.numberOfTrailingZeros(q.todo[t].get(s));
  }

  private void laneDone(long[] s, int t, int lane, Pc step) {
    q.todo[t].set(s, q.todo[t].get(s) & ~(1 << lane));
    if (q.todo[t].get(s) == 0) {
      after(s, t, step);
    }
  }
}
