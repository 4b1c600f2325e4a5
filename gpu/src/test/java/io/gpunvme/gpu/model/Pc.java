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
  // Between two kernels
  RECOVER,
  END;

  private static final Pc[] ALL = values();

  static Pc of(int ordinal) {
    return ALL[ordinal];
  }

  boolean holds() {
    return compareTo(SCAN) >= 0 && compareTo(AGAIN) <= 0;
  }
}
