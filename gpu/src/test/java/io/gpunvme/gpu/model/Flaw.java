package io.gpunvme.gpu.model;

/** The protocol with one of its rules left out. {@code NONE} is the protocol. */
enum Flaw {
  NONE,

  // ---- submission
  /** A slot is taken by a load and a store, not by one atomic operation. */
  TAKE_NOT_ATOMIC,
  /** A CID is the slot's number only. */
  NO_GENERATION,
  /** A lane takes its ticket before it has a slot. */
  TICKET_BEFORE_SLOT,
  /** A lane whose deadline has passed leaves between its ticket and its mark. */
  EXIT_BEFORE_MARK,
  /** The mark may become visible before the SQE: no release between them. */
  MARK_BEFORE_SQE,
  /** The mark may become visible after the service word: no release between them. */
  ANNOUNCE_BEFORE_MARK,
  /** A caller that finds the word LOCKED does not tell the holder. */
  ANNOUNCE_WITHOUT_PENDING,
  /** Lanes that have a slot wait until the whole group has, and only then write their SQEs. */
  GROUP_TAKES_ALL_FIRST,
  /** Lanes whose command is in flight do not look at it until the whole group has slots. */
  GROUP_SUBMITS_ALL_FIRST,

  // ---- service
  /** The doorbell announces every ticket. */
  NO_MARKS,
  /** A mark says "written" and not for which lap. */
  MARK_WITHOUT_LAP,
  /** PENDING is cleared when the marks have been read: no acquire when the word is taken. */
  CLEAR_AFTER_SCAN,
  /** The holder leaves with a plain store. */
  LEAVE_BY_STORE,
  /** The holder leaves although it was told of more, whatever the round. */
  LEAVE_WITHOUT_LOOKING,
  /** The word may become visible before the doorbell: no release between them. */
  LEAVE_BEFORE_DOORBELL,
  /** {@code rung}, which has fewer bits, is compared with the ticket as it is. */
  RUNG_NOT_WRAPPED,
  /** One pass announces one SQE at most, and the holder leaves all the same. */
  RING_LIMIT,

  // ---- completion
  /** The CID is read before the phase tag. */
  CID_BEFORE_PHASE,
  /** The holder expects the same phase on every lap. */
  PHASE_NOT_FLIPPED,
  /** The entry is given back to the controller before it is read. */
  CQ_DOORBELL_BEFORE_READ,
  /** Consumed entries are never given back. */
  CQ_DOORBELL_FORGOTTEN,
  /** A completion is stored into the slot, whatever state the slot is in. */
  DELIVER_BY_STORE,
  /** A completion is matched by slot number and state; the generation is not compared. */
  DELIVER_TO_ANY_GENERATION,
  /** The slot of a late completion stays quarantined. */
  LATE_SLOT_KEPT,
  /** A late completion frees the slot with a plain store: two lanes may both do it. */
  LATE_BY_STORE,
  /** A late completion sets the free bit before the slot's word is FREE. */
  LATE_BIT_BEFORE_WORD,

  // ---- waiting
  /** Waiters leave the service to submitters. */
  WAITER_DOES_NOT_SERVE,
  /** Lanes that wait for a slot leave the service to others. */
  TAKER_DOES_NOT_SERVE,
  /** The status may be read after the free bit was set: no release between them. */
  BIT_BEFORE_STATUS,
  /** A slot is quarantined with a plain store. */
  QUARANTINE_BY_STORE,
  /** A slot is free again at its command's deadline. */
  QUARANTINE_REUSED,
  /** TIMEOUT is reported even if the command was completed in the last moment. */
  QUARANTINE_FAILURE_IGNORED,
  /** A waiter takes any result that it finds in its slot. */
  WAIT_FOR_ANY_GENERATION,
  /** When quarantine fails, the command is taken for done. */
  QUARANTINE_FAILURE_MEANS_DONE,

  // ---- serving for others
  /** A server leaves while there are callers that depend on it. */
  SERVER_LEAVES_EARLY,
  /** A server that sees that nobody is left looks no more. */
  NO_LAST_TURN,
  /** In its last turn a server that finds the word LOCKED, or loses it, tells nobody. */
  LAST_TURN_WITHOUT_PENDING,
  /** A caller may seem to have left before its mark is visible: no release between them. */
  LEFT_BEFORE_MARK,

  // ---- recovery
  /** Recovery starts the generations again. */
  RECOVERY_RESETS_GENERATIONS,
  /** Recovery frees slots and leaves the results in their words. */
  RECOVERY_KEEPS_RESULTS,
  /** Recovery starts the tickets again and leaves the marks. */
  RECOVERY_KEEPS_MARKS,

  // ---- recovery while callers are at work
  /** The host does not wait for the pause. */
  LIVE_WITHOUT_PAUSE,
  /** The pause does not hold the service word. */
  LIVE_UNLOCKED,
  /** Tickets are given out during the pause. */
  LIVE_GATE_OPEN,
  /** The pause does not wait for the marks of those that have tickets. */
  LIVE_MARKS_NOT_AWAITED,
  /** A caller that got no ticket keeps its slot. */
  LIVE_REFUSED_KEEPS_SLOT,
  /** Two callers may set the queue back at the same time. */
  LIVE_TWO_AT_ONCE,
  /** A command in flight is ended by a store, whatever its owner does at that moment. */
  LIVE_ABORT_BY_STORE,
  /** Marks stay, those of a lap that is skipped too. */
  LIVE_KEEPS_MARKS,
  /** What was marked during the pause is left to somebody else. */
  LIVE_UNRUNG,
  /** Tickets are given out before the service word is let go, and PENDING is forgotten with it. */
  LIVE_GATE_FIRST
}
