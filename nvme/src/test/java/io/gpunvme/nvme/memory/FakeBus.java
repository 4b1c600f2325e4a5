package io.gpunvme.nvme.memory;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;

/**
 * A bus for tests: gives out addresses, contiguous or page by page, and reads memory through them.
 */
public final class FakeBus implements BusMapper {
  private static final long FIRST = 0x7_0000_0000L;

  private record Page(MemorySegment memory, long offset) {}

  private final Map<Long, Page> pages = new HashMap<>();
  private final boolean scattered;
  private long next = FIRST;
  private int mapped;

  public FakeBus(boolean scattered) {
    this.scattered = scattered;
  }

  @Override
  public BusRange map(MemorySegment memory) {
    int count = (int) (memory.byteSize() / BusRange.GRANULE);
    long[] addresses = new long[count];
    for (int i = 0; i < count; i++) {
      // Scattered: every other page leaves a hole, so runs of one and two pages both occur.
      addresses[i] = next;
      next += scattered && i % 3 != 0 ? 5 * BusRange.GRANULE : BusRange.GRANULE;
      pages.put(addresses[i], new Page(memory, (long) i * BusRange.GRANULE));
    }
    mapped++;
    return scattered
        ? BusRange.scattered(memory, addresses, () -> mapped--)
        : BusRange.contiguous(memory, addresses[0], () -> mapped--);
  }

  /** Ranges mapped and not yet closed. */
  public int mapped() {
    return mapped;
  }

  /** The 8 bytes at a bus address, as a device would read them. */
  public long readLong(long address) {
    Page page = page(address);
    return page.memory.get(
        ValueLayout.JAVA_LONG_UNALIGNED, page.offset + (address & (BusRange.GRANULE - 1)));
  }

  /** The offset of a bus address in its memory; fails if it is not mapped. */
  public long offsetOf(long address) {
    return page(address).offset + (address & (BusRange.GRANULE - 1));
  }

  private Page page(long address) {
    Page page = pages.get(address & -BusRange.GRANULE);
    if (page == null) {
      throw new AssertionError("bus address " + Long.toHexString(address) + " is not mapped");
    }
    return page;
  }
}
