package io.gpunvme.gpu.model;

/**
 * One call into the queue.
 *
 * @param first number of the first command; the lanes of the group have consecutive ones
 * @param lanes lanes that call together
 */
record Op(Kind kind, int first, int lanes) {
  enum Kind {
    /** Submit and wait. */
    READ,
    /** Submit and return. */
    SUBMIT,
    /** Wait for what an earlier SUBMIT has submitted. */
    WAIT,
    /** Wait for what another caller's SUBMIT has submitted, behind it. */
    ADOPT,
    /** Serve until all callers that do not serve are gone. */
    SERVE,
    /** The kernel has ended, the host recovers the queue, the next kernel begins. */
    RECOVER
  }
}
