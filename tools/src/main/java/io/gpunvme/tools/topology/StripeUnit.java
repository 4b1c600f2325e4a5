package io.gpunvme.tools.topology;

import io.gpunvme.base.InvalidRequestException;

/**
 * A stripe unit for requests of a length.
 *
 * @param requestBytes the length of a request
 * @param unitBytes the unit: a power of two
 * @param busy how many SSDs work on one request at a time
 * @param reason in a few words
 */
public record StripeUnit(long requestBytes, long unitBytes, int busy, String reason) {
  /**
   * The least unit, by a rule of thumb: SSDs reach their full rate with commands of about this
   * length, so shorter pieces cost commands and save no time.
   */
  private static final long LEAST = 128 << 10;

  /** The default of {@code stripe:}; longer pieces are cut into several commands anyway. */
  private static final long MOST = 1 << 20;

  /**
   * For a set.
   *
   * @param requestBytes 1 or more
   * @param ssds 2 or more
   * @throws InvalidRequestException if the request has no bytes
   */
  public static StripeUnit of(long requestBytes, int ssds) {
    if (requestBytes < 1) {
      throw new InvalidRequestException(
          "a request of " + requestBytes + " bytes has no stripe unit");
    }
    long share = requestBytes / ssds;
    if (requestBytes <= LEAST) {
      return new StripeUnit(
          requestBytes, LEAST, 1, "one SSD serves it whole; many requests keep all busy");
    }
    if (share < LEAST) {
      int busy = (int) Math.min(ssds, (requestBytes + LEAST - 1) / LEAST);
      return new StripeUnit(
          requestBytes, LEAST, busy, "shorter pieces would cost commands and save no time");
    }
    long unit = Math.min(MOST, Long.highestOneBit(share));
    return new StripeUnit(requestBytes, unit, ssds, "each SSD has a part of every request");
  }
}
