package io.gpunvme.nvme.pci;

import io.gpunvme.base.InvalidRequestException;
import java.util.regex.Pattern;

/**
 * What is asked for as {@code numa=}: the node that a device's memory and threads are placed on.
 * Immutable.
 *
 * @param kind what it is
 * @param node of {@link Kind#NODE}, &gt;= 0; else -1
 */
public record NumaOption(Kind kind, int node) {
  /** The node that the kernel names for the device. */
  public static final NumaOption AUTO = new NumaOption(Kind.AUTO, -1);

  /** None. */
  public static final NumaOption OFF = new NumaOption(Kind.OFF, -1);

  private static final Pattern NUMBER = Pattern.compile("\\d{1,4}");

  /** Who chooses. */
  public enum Kind {
    /** The kernel. */
    AUTO,
    /** Nobody: nothing is placed. */
    OFF,
    /** Whoever asks, by the number of a node. */
    NODE
  }

  /**
   * Reads {@code auto}, {@code off} or a number. Whether there is such a node is found when a
   * device is opened.
   *
   * @throws InvalidRequestException if it is none of them
   */
  public static NumaOption parse(String text) {
    return switch (text) {
      case "auto" -> AUTO;
      case "off" -> OFF;
      default -> {
        if (!NUMBER.matcher(text).matches()) {
          throw new InvalidRequestException(
              "numa=" + text + ": must be auto, off or the number of a NUMA node");
        }
        yield new NumaOption(Kind.NODE, Integer.parseInt(text));
      }
    };
  }
}
