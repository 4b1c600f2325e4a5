package io.gpunvme.storage.path;

/**
 * The counts of a member so far.
 *
 * @param name in messages
 * @param bytes moved
 * @param nanos working time; simultaneous transfers add up
 * @param failure why it is not used any more, or empty
 */
public record MemberStats(String name, long bytes, long nanos, String failure) {
  /** 10^9 bytes a second while it was at work. */
  public double gigabytesPerSecond() {
    return nanos == 0 ? 0 : (double) bytes / nanos;
  }
}
