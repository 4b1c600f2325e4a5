package io.gpunvme.gpu.model;

/** What a caller does next: one operation on shared words each. */
enum Pc {
  // Submission
  TAKE,
  TICKET,
  WORD,
  SQE,
  MARK,
  ANNOUNCE,
  HOLD,
  // Service; from here to AGAIN the caller is the holder
  SCAN,
  DOORBELL,
  /** Too late: see {@link Flaw#CLEAR_AFTER_SCAN}. */
  CLEAR,
  LOOK,
  DELIVER,
  CQ_DOORBELL,
  LEAVE,
  AGAIN,
  /** Too late: see {@link Flaw#LEAVE_BEFORE_DOORBELL}. */
  AFTERWARDS,
  // Waiting
  WAIT,
  FREE_BIT,
  /** Too late: see {@link Flaw#BIT_BEFORE_STATUS}. */
  STATUS,
  /** For another caller's command. */
  ADOPT,
  // Serving for others
  SERVE,
  /** Behind the last caller. */
  LAST_TURN,
  /** Tries to take the word that it has set PENDING in. */
  LAST_HOLD,
  /** There is no ticket: slots are given back. */
  REFUSED,
  // Recovery while callers are at work
  PAUSE_LOCK,
  PAUSE_GATE,
  PAUSE_MARKS,
  RESUME_SLOT,
  /** Too late: see {@link Flaw#LIVE_ABORT_BY_STORE}. */
  RESUME_STORE,
  RESUME_FREE,
  RESUME_BIT,
  RESUME_WORD,
  RESUME_RING,
  RESUME_UNLOCK,
  RESUME_GATE,
  RESUME_END,
  // Between two kernels
  RECOVER,
  END;

  private static final Pc[] ALL = values();

  static Pc of(int ordinal) {
    return ALL[ordinal];
  }

  boolean holds() {
    return compareTo(SCAN) >= 0 && compareTo(AGAIN) <= 0
        || compareTo(PAUSE_GATE) >= 0 && compareTo(RESUME_UNLOCK) <= 0;
  }

  boolean recovers() {
    return compareTo(PAUSE_LOCK) >= 0 && compareTo(RESUME_END) <= 0;
  }
}
