package io.gpunvme.tools.machine;

import java.util.Locale;

/**
 * The PCI Express link above a function. 0 where the kernel does not say, as for functions of the
 * root complex and of most virtual machines.
 *
 * @param speed GT/s now; GPUs lower it when idle
 * @param width lanes now
 * @param maxSpeed GT/s that the function can
 * @param maxWidth lanes that the function can
 */
public record PciLink(double speed, int width, double maxSpeed, int maxWidth) {
  /** The kernel says nothing about it. */
  public static final PciLink UNKNOWN = new PciLink(0, 0, 0, 0);

  private static final double BITS = 8;

  /** Up to 5 GT/s a byte takes 10 bits on the link, up to 32 GT/s 16 bytes take 130. */
  private static final double CODE_8B10B = 8.0 / 10;

  private static final double CODE_128B130B = 128.0 / 130;

  /** From 64 GT/s on 242 of a flit's 256 bytes are of the transaction and data link layers. */
  private static final double CODE_FLIT = 242.0 / 256;

  private static final double LAST_8B10B = 5;
  private static final double LAST_128B130B = 32;

  /** Whether the kernel tells the speed and width of now. */
  public boolean known() {
    return speed > 0 && width > 0;
  }

  /** GB/s of now, before the headers of packets; 0 if it is not known. */
  public double gigabytesPerSecond() {
    return gigabytesPerSecond(speed, width);
  }

  /** GB/s at the function's best, before the headers of packets; 0 if it is not known. */
  public double maxGigabytesPerSecond() {
    return gigabytesPerSecond(maxSpeed, maxWidth);
  }

  /**
   * What a link carries in one direction, before the headers of packets (PCI Express Base
   * Specification 6.0, 4.2).
   *
   * @param speed GT/s
   */
  public static double gigabytesPerSecond(double speed, int width) {
    double code =
        speed <= LAST_8B10B ? CODE_8B10B : speed <= LAST_128B130B ? CODE_128B130B : CODE_FLIT;
    return speed * width * code / BITS;
  }

  /** {@code 16GT/s x4 of 32GT/s x4}, or {@code 16GT/s x4} if that is its best; {@code -}. */
  @Override
  public String toString() {
    String now = text(speed, width);
    String most = text(maxSpeed, maxWidth);
    return !known() || now.equals(most) || maxSpeed == 0 || maxWidth == 0
        ? now
        : now + " of " + most;
  }

  static String text(double speed, int width) {
    if (speed <= 0 || width <= 0) {
      return "-";
    }
    return (speed == Math.rint(speed)
            ? "%.0fGT/s x%d".formatted(speed, width)
            : String.format(Locale.ROOT, "%.1fGT/s x%d", speed, width))
        .strip();
  }
}
