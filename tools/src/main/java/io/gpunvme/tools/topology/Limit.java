package io.gpunvme.tools.topology;

import java.util.Locale;

/**
 * The rate that a way cannot exceed.
 *
 * @param gigabytesPerSecond in one direction, before the headers of packets (data gets 85 to 90 %
 *     of it); 0 if not known
 * @param reason what sets it, or why it is not known
 */
public record Limit(double gigabytesPerSecond, String reason) {
  /** Not known. */
  static Limit unknown(String reason) {
    return new Limit(0, reason);
  }

  /** Whether it is known. */
  public boolean known() {
    return gigabytesPerSecond > 0;
  }

  /** {@code 7.9}, {@code -} if not known. */
  @Override
  public String toString() {
    return known() ? String.format(Locale.ROOT, "%.1f", gigabytesPerSecond) : "-";
  }
}
