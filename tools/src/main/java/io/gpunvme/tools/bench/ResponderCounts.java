package io.gpunvme.tools.bench;

/**
 * What a responder has seen.
 *
 * @param answered commands answered
 * @param wrong commands that failed a check, and doorbell values outside the ring
 * @param doorbells changes of submission doorbells seen; several stores between two looks are one
 * @param sum of the numbers of all commands, modulo 2^64: tells a doubled command from a lost one
 */
public record ResponderCounts(long answered, long wrong, long doorbells, long sum) {
  /** Of no queue. */
  static final ResponderCounts NONE = new ResponderCounts(0, 0, 0, 0);

  /** Both together. */
  ResponderCounts plus(ResponderCounts other) {
    return new ResponderCounts(
        answered + other.answered,
        wrong + other.wrong,
        doorbells + other.doorbells,
        sum + other.sum);
  }
}
