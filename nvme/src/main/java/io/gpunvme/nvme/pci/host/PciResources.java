package io.gpunvme.nvme.pci.host;

import io.gpunvme.base.InvalidRequestException;
import java.util.ArrayList;
import java.util.List;

/**
 * What sysfs says in a function's attribute {@code resource}: a line with first address, last
 * address and flags for each BAR (Linux, {@code Documentation/PCI/sysfs-pci.rst}).
 */
public final class PciResources {
  /** How many BARs a function may have. */
  public static final int BARS = 6;

  // include/linux/ioport.h
  private static final long MEMORY = 0x200;
  private static final long PREFETCHABLE = 0x2000;

  private static final int FIELDS = 3;
  private static final int HEX = 16;

  private PciResources() {}

  /**
   * One BAR; all zero where the function has none.
   *
   * @param first physical address of the first byte
   * @param last of the last byte
   */
  public record Resource(long first, long last, long flags) {
    /** Whether it is memory, not I/O ports. */
    public boolean isMemory() {
      return (flags & MEMORY) != 0;
    }

    /** Whether reads have no side effects, as those of registers may. */
    public boolean isPrefetchable() {
      return isMemory() && (flags & PREFETCHABLE) != 0;
    }

    /** Bytes; 0 for none. */
    public long size() {
      return flags == 0 ? 0 : last - first + 1;
    }
  }

  /**
   * Reads the attribute.
   *
   * @return a resource for each line, {@link #BARS} at most
   * @throws InvalidRequestException if it is anything else
   */
  public static List<Resource> parse(String text) {
    List<Resource> found = new ArrayList<>();
    for (String line : text.lines().limit(BARS).toList()) {
      String[] fields = line.strip().split(" +", -1);
      if (fields.length != FIELDS) {
        throw new InvalidRequestException("'" + line + "' is not how sysfs describes a BAR");
      }
      Resource resource = new Resource(number(fields[0]), number(fields[1]), number(fields[2]));
      if (resource.flags != 0 && Long.compareUnsigned(resource.first, resource.last) > 0) {
        throw new InvalidRequestException("'" + line + "' is a BAR that ends before it begins");
      }
      found.add(resource);
    }
    return found;
  }

  private static long number(String text) {
    try {
      return Long.parseUnsignedLong(text.replaceFirst("^0x", ""), HEX);
    } catch (NumberFormatException e) {
      throw new InvalidRequestException("'" + text + "' is not how sysfs writes a number");
    }
  }
}
