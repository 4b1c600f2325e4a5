package io.gpunvme.nvme.pci.sysfs;

import io.gpunvme.nvme.InvalidRequestException;
import java.util.ArrayList;
import java.util.List;

/** The attribute {@code resource}: a line with first address, last address and flags per BAR. */
final class SysfsResources {
  static final int BARS = 6;

  private static final long MEMORY = 0x200;
  private static final int FIELDS = 3;

  private SysfsResources() {}

  /** One line; all zero where the function has no such BAR. */
  record Resource(long first, long last, long flags) {
    boolean isMemory() {
      return (flags & MEMORY) != 0;
    }

    long size() {
      return flags == 0 ? 0 : last - first + 1;
    }
  }

  static List<Resource> parse(String text) {
    List<Resource> found = new ArrayList<>();
    for (String line : text.lines().limit(BARS).toList()) {
      String[] fields = line.strip().split(" +", -1);
      if (fields.length != FIELDS) {
        throw new InvalidRequestException("'" + line + "' is not how sysfs describes a BAR");
      }
      found.add(new Resource(number(fields[0]), number(fields[1]), number(fields[2])));
    }
    return found;
  }

  private static long number(String text) {
    try {
      return Long.parseUnsignedLong(text.replaceFirst("^0x", ""), 16);
    } catch (NumberFormatException e) {
      throw new InvalidRequestException("'" + text + "' is not how sysfs writes a number");
    }
  }
}
