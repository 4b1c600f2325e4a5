package io.gpunvme.gpu.model;

import java.util.Arrays;

/** The words of the queue, of its callers and of the controller, as fields of a state. */
final class QueueState {
  /** What a slot's word says. */
  enum Slot {
    FREE,
    IN_FLIGHT,
    DONE,
    QUARANTINED,
    /** Done by the host's recovery. */
    ABORTED
  }

  /** How far a recovery is while callers are at work. */
  enum Live {
    RUNS,
    ASKED,
    PAUSING,
    PAUSED,
    MADE,
    RESUMING
  }

  /** What a caller was told of its command. */
  enum Outcome {
    NONE,
    DONE,
    TIMEOUT,
    NO_SLOT,
    LOST_IN_RECOVERY,
    ABORTED
  }

  /** How far the controller is with a command. */
  enum Stage {
    NEW,
    FETCHED,
    POSTED,
    /** No completion will come. */
    GONE
  }

  /** Bits of the service word. */
  static final int LOCKED = 1;

  static final int PENDING = 2;

  /** Lanes of a group at most. */
  static final int LANES = 3;

  /** Where a holder goes when it leaves. */
  enum Back {
    SUBMITTED,
    TAKE,
    WAIT,
    SERVE,
    LAST_TURN
  }

  final Layout layout = new Layout();

  // ---- words of the queue; a command's number stands for its status, so that a wrong one shows
  final Field free;
  final Field[] slot;
  final Field[] slotGeneration;
  final Field[] slotCommand;
  final Field ticket;

  /** In the ticket, too: nobody gets one. */
  final Field gate;

  final Field live;

  /** Whether the recovery has made this queue pair anew. */
  final Field fresh;

  /** Recoveries that the host may still ask for while callers are at work. */
  final Field liveLeft;

  final Field[] marks;
  final Field service;

  // ---- in the service word, too, but nobody looks at them while it is LOCKED
  final Field rung;
  final Field head;

  /** The holder's own. */
  final Field givenBack;

  // ---- shared with the controller; SQ and CQ entries hold a command's number + 1, 0 once consumed
  final Field[] sq;
  final Field[] cq;
  final Field[] cqPhase;
  final Field doorbell;
  final Field cqDoorbell;

  // ---- the controller's own
  final Field fetched;
  final Field posted;
  final Field drops;
  final Field duplicates;

  /** Deadlines that may still pass too early. */
  final Field early;

  // ---- commands
  final Field[] commandSlot;
  final Field[] generation;
  final Field[] outcome;
  final Field[] stage;
  final Field[] announced;
  final Field[] consumed;

  // ---- callers: where they are and what they hold in registers; lanes are bits
  final Field[] op;
  final Field[] pc;
  final Field[] pending;
  final Field[] batch;
  final Field[] mine;
  final Field[] todo;
  final Field[] base;
  final Field[] lane;
  final Field[] round;
  final Field[] back;
  final Field[] tail;
  final Field[] seenRung;
  final Field[] seenHead;
  final Field[][] cqe;
  final Field[][] cqeStep;

  private final int positions;
  private final int cqPositions;

  QueueState(QueueConfig c) {
    positions = c.positions();
    cqPositions = c.cqPositions();
    int commands = c.commands;
    int callers = c.programs.size();
    int lanes = (1 << LANES) - 1;
    free = layout.field("free", (1 << c.depth) - 1);
    slot = layout.fields("slot", c.depth, Slot.values());
    slotGeneration = layout.fields("slotGeneration", c.depth, c.generations - 1);
    slotCommand = layout.fields("slotCommand", c.depth, commands);
    ticket = layout.field("ticket", c.tickets() - 1);
    gate = layout.field("gate", 1);
    live = layout.fields("live", 1, Live.values())[0];
    fresh = layout.field("fresh", 1);
    liveLeft = layout.field("liveLeft", c.live);
    marks = layout.fields("mark", c.sqSize, (c.positions() - 1) / c.sqSize + 1);
    service = layout.field("service", LOCKED | PENDING);
    rung = layout.field("rung", c.positions() - 1);
    head = layout.field("head", c.cqPositions() - 1);
    givenBack = layout.field("givenBack", c.cqPositions() - 1);
    sq = layout.fields("sq", c.sqSize, commands);
    cq = layout.fields("cq", c.cqSize, commands);
    cqPhase = layout.fields("cqPhase", c.cqSize, 1);
    doorbell = layout.field("sqDoorbell", c.sqSize - 1);
    cqDoorbell = layout.field("cqDoorbell", c.cqPositions() - 1);
    fetched = layout.field("fetched", c.tickets() - 1);
    posted = layout.field("posted", c.cqPositions() - 1);
    drops = layout.field("drops", c.drops);
    duplicates = layout.field("duplicates", c.duplicates);
    early = layout.field("early", c.early);
    commandSlot = layout.fields("commandSlot", commands, c.depth - 1);
    generation = layout.fields("generation", commands, c.generations - 1);
    outcome = layout.fields("outcome", commands, Outcome.values());
    stage = layout.fields("stage", commands, Stage.values());
    announced = layout.fields("announced", commands, 1);
    consumed = layout.fields("consumed", commands, 1);
    op = layout.fields("op", callers, 7);
    pc = layout.fields("pc", callers, Pc.values());
    pending = layout.fields("pending", callers, lanes);
    batch = layout.fields("batch", callers, lanes);
    mine = layout.fields("mine", callers, lanes);
    todo = layout.fields("todo", callers, lanes);
    base = layout.fields("base", callers, c.tickets() - 1);
    lane = layout.fields("lane", callers, 2);
    round = layout.fields("round", callers, c.mostRounds());
    back = layout.fields("back", callers, Back.values());
    tail = layout.fields("tail", callers, commands);
    seenRung = layout.fields("seenRung", callers, c.positions() - 1);
    seenHead = layout.fields("seenHead", callers, c.cqPositions() - 1);
    cqe = new Field[callers][];
    cqeStep = new Field[callers][];
    Arrays.setAll(cqe, t -> layout.fields("cqe" + t, c.window, commands));
    Arrays.setAll(cqeStep, t -> layout.fields("cqeStep" + t, c.window, Service.CqeStep.values()));
  }

  /** How many positions have a ticket and are not rung. */
  int unrung(long[] s) {
    return Math.floorMod(ticket.get(s) - rung.get(s), positions);
  }

  /** How many CQEs lie between two positions. */
  int cqes(long[] s, Field from, Field to) {
    return Math.floorMod(to.get(s) - from.get(s), cqPositions);
  }

  Pc pc(long[] s, int t) {
    return Pc.of(pc[t].get(s));
  }

  void go(long[] s, int t, Pc next) {
    pc[t].set(s, next.ordinal());
  }

  boolean is(long[] s, int at, Slot state) {
    return slot[at].get(s) == state.ordinal();
  }

  void put(long[] s, int at, Slot state) {
    slot[at].set(s, state.ordinal());
  }

  /** True if the slot's word has the command's CID. */
  boolean hasCid(long[] s, int at, int command) {
    return slotGeneration[at].get(s) == generation[command].get(s);
  }

  boolean is(long[] s, int command, Outcome what) {
    return outcome[command].get(s) == what.ordinal();
  }

  boolean is(long[] s, int command, Stage what) {
    return stage[command].get(s) == what.ordinal();
  }

  void put(long[] s, int command, Stage what) {
    stage[command].set(s, what.ordinal());
  }

  /** Tells the caller what became of its command, once. */
  void tell(long[] s, int command, Outcome what) {
    if (!is(s, command, Outcome.NONE)) {
      throw new Violation("command " + command + " gets a second outcome");
    }
    outcome[command].set(s, what.ordinal());
  }

  boolean is(long[] s, Live phase) {
    return live.get(s) == phase.ordinal();
  }

  void put(long[] s, Live phase) {
    live.set(s, phase.ordinal());
  }

  boolean hasService(long[] s, int bit) {
    return (service.get(s) & bit) != 0;
  }

  void setFree(long[] s, int at) {
    if ((free.get(s) >> at & 1) != 0) {
      throw new Violation("slot " + at + " is freed twice");
    }
    free.set(s, free.get(s) | 1 << at);
  }
}
