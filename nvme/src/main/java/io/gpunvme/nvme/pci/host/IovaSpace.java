package io.gpunvme.nvme.pci.host;

import io.gpunvme.base.Align;
import io.gpunvme.nvme.DmaMappingException;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;

/**
 * Which bus addresses of an IOMMU are taken: hands out free ones, first fit. Only arithmetic, no
 * device. Safe for all threads.
 *
 * <p>Addresses from 4 GiB up come first. Below lie the windows of PCI devices; where bridges do not
 * isolate their ports, an access to such an address can end at a neighbour instead of in the IOMMU.
 */
public final class IovaSpace {
  /** The alignment that lets an IOMMU use its large pages. */
  public static final long LARGE_PAGE = 2L << 20;

  private static final long ABOVE_WINDOWS = 1L << 32;

  /** Never given out, so that a bus address of 0, or a small one, is always a mistake. */
  private static final long LOWEST = 1L << 20;

  /** The top of a 64-bit space is left alone: nobody needs it, and sums cannot overflow. */
  private static final long HIGHEST = (1L << 62) - 1;

  /**
   * Addresses that an IOMMU translates.
   *
   * @param first the first
   * @param last the last one that still belongs to it, unsigned and at least {@code first}
   */
  public record Range(long first, long last) {
    /** Checks the order. */
    public Range {
      if (Long.compareUnsigned(first, last) > 0) {
        throw new IllegalArgumentException("range from %Xh to %Xh".formatted(first, last));
      }
    }
  }

  private final List<Range> usable = new ArrayList<>();
  private final long page;
  private final long gap;
  private final int addressBits;

  /** Size by first address. */
  private final TreeMap<Long, Long> taken = new TreeMap<>();

  /**
   * @param ranges what the IOMMU translates, ascending
   * @param page its smallest page in bytes, a power of two
   */
  public IovaSpace(List<Range> ranges, long page) {
    this(ranges, page, page);
  }

  private IovaSpace(List<Range> ranges, long page, long gap) {
    if (Long.bitCount(page) != 1) {
      throw new IllegalArgumentException("page of " + page + " bytes");
    }
    this.page = page;
    this.gap = gap;
    int bits = 0;
    for (Range r : ranges) {
      bits = Math.max(bits, Long.SIZE - Long.numberOfLeadingZeros(r.last));
      long first = Align.up(Math.max(LOWEST, Math.max(0, r.first)), page);
      long last = Long.compareUnsigned(r.last, HIGHEST) > 0 ? HIGHEST : r.last;
      if (r.first >= 0 && last - first >= page - 1) {
        usable.add(new Range(first, last));
      }
    }
    this.addressBits = bits;
  }

  /** One range whose runs may touch. */
  static IovaSpace withoutGaps(Range range, long page) {
    return new IovaSpace(List.of(range), page, 0);
  }

  /** Bits of the highest address that the IOMMU translates. */
  public int addressBits() {
    return addressBits;
  }

  /** The smallest page of the IOMMU, bytes. */
  public long page() {
    return page;
  }

  /** How many runs are taken. */
  public synchronized int count() {
    return taken.size();
  }

  /**
   * Takes a run of addresses. At least a page stays free on either side, so that a device which
   * runs over an end is noticed by the IOMMU.
   *
   * @param bytes &gt; 0, a multiple of the page
   * @param alignment of the first address, a power of two
   * @throws DmaMappingException if no run is free
   */
  public synchronized long take(long bytes, long alignment) {
    long found = takeIfFree(bytes, alignment);
    if (found < 0) {
      throw new DmaMappingException(
          "no run of %d bytes, aligned to %d, is free in the %d-bit bus addresses of this IOMMU (%d"
                  .formatted(bytes, Math.max(page, alignment), addressBits, taken.size())
              + " ranges are mapped); unmap buffers, or use smaller ones");
    }
    return found;
  }

  /** As {@link #take}, but -1 if no run is free. */
  synchronized long takeIfFree(long bytes, long alignment) {
    if (bytes <= 0 || bytes % page != 0 || Long.bitCount(alignment) != 1) {
      throw new IllegalArgumentException(bytes + " bytes aligned to " + alignment);
    }
    long step = Math.max(page, alignment);
    long found = firstFit(ABOVE_WINDOWS, bytes, step);
    if (found < 0) {
      found = firstFit(0, bytes, step);
    }
    if (found >= 0) {
      taken.put(found, bytes);
    }
    return found;
  }

  private long firstFit(long lowest, long bytes, long step) {
    for (Range r : usable) {
      long candidate = Align.up(Math.max(lowest, r.first), step);
      while (candidate >= r.first && candidate <= r.last && bytes - 1 <= r.last - candidate) {
        long blocked = endOfBlocker(candidate, bytes);
        if (blocked < 0) {
          return candidate;
        }
        candidate = Align.up(blocked + gap, step);
      }
    }
    return -1;
  }

  /** The end of a taken run that is too near to {@code [from, from + bytes)}, or -1. */
  private long endOfBlocker(long from, long bytes) {
    var below = taken.floorEntry(from + bytes - 1);
    if (below != null && below.getKey() + below.getValue() > from - gap) {
      return below.getKey() + below.getValue();
    }
    var above = taken.ceilingEntry(from + bytes);
    return above != null && above.getKey() - gap < from + bytes
        ? above.getKey() + above.getValue()
        : -1;
  }

  /**
   * Gives a run back.
   *
   * @param first what {@link #take} returned
   */
  public synchronized void release(long first) {
    if (taken.remove(first) == null) {
      throw new IllegalArgumentException("%Xh is not taken".formatted(first));
    }
  }

  /** The alignment at which memory suits the large pages of CPU and IOMMU alike. */
  public static long suitableAlignment(long address, long bytes) {
    long own = Math.min(Long.lowestOneBit(address | LARGE_PAGE), LARGE_PAGE);
    return bytes < own ? Long.highestOneBit(bytes) : own;
  }
}
