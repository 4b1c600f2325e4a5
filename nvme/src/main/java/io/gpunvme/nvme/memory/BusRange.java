package io.gpunvme.nvme.memory;

import io.gpunvme.nvme.InvalidRequestException;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A piece of memory together with the bus addresses at which one controller reaches it.
 *
 * <p>Behind an IOMMU a range is one run of bus addresses; without one, each 4 KiB page has its own.
 * Immutable apart from {@link #close}; safe for all threads. After {@code close} the bus addresses
 * must not be given to the controller any more, and asking for one throws.
 */
public final class BusRange implements AutoCloseable {
  /** Bytes per entry of a scattered range: the smallest page a controller or IOMMU works with. */
  public static final int GRANULE = 4096;

  private static final int GRANULE_SHIFT = 12;

  private final MemorySegment memory;
  private final long base;
  private final long @org.jspecify.annotations.Nullable [] granules;
  private final Runnable unmap;
  private final AtomicBoolean closed = new AtomicBoolean();

  private BusRange(
      MemorySegment memory,
      long base,
      long @org.jspecify.annotations.Nullable [] granules,
      Runnable unmap) {
    this.memory = memory;
    this.base = base;
    this.granules = granules;
    this.unmap = unmap;
  }

  /**
   * A range whose bus addresses are one run.
   *
   * @param base bus address of the first byte, a multiple of 4096
   * @param unmap undoes the mapping; called once, by {@link #close}
   */
  public static BusRange contiguous(MemorySegment memory, long base, Runnable unmap) {
    if ((base & (GRANULE - 1)) != 0) {
      throw new IllegalArgumentException("bus address " + Long.toHexString(base) + " not aligned");
    }
    return new BusRange(memory, base, null, unmap);
  }

  /**
   * A range with one bus address per 4096 bytes.
   *
   * @param granules the address of each 4096-byte piece in order; copied
   */
  public static BusRange scattered(MemorySegment memory, long[] granules, Runnable unmap) {
    if ((long) granules.length << GRANULE_SHIFT < memory.byteSize()) {
      throw new IllegalArgumentException(
          granules.length + " addresses for " + memory.byteSize() + " bytes");
    }
    return new BusRange(memory, 0, granules.clone(), unmap);
  }

  /** The memory itself, as the CPU (or the device that owns it) addresses it. */
  public MemorySegment memory() {
    return memory;
  }

  /** Size in bytes. */
  public long size() {
    return memory.byteSize();
  }

  /**
   * The bus address of a byte.
   *
   * @param offset 0 ≤ offset &lt; size
   */
  public long busAddress(long offset) {
    if (offset < 0 || offset >= memory.byteSize()) {
      throw new InvalidRequestException(
          "offset " + offset + " is outside the mapped range of " + memory.byteSize() + " bytes");
    }
    if (closed.getPlain()) {
      throw new IllegalStateException("this bus range is closed");
    }
    long[] g = granules;
    return g == null
        ? base + offset
        : g[(int) (offset >>> GRANULE_SHIFT)] + (offset & (GRANULE - 1));
  }

  /**
   * How many bytes from {@code offset} on have consecutive bus addresses, at most {@code limit}.
   */
  public long contiguous(long offset, long limit) {
    long end = Math.min(memory.byteSize(), offset + limit);
    long[] g = granules;
    if (g == null) {
      return end - offset;
    }
    int i = (int) (offset >>> GRANULE_SHIFT);
    long reach = ((long) i + 1) << GRANULE_SHIFT;
    while (reach < end && g[i + 1] == g[i] + GRANULE) {
      i++;
      reach += GRANULE;
    }
    return Math.min(reach, end) - offset;
  }

  /** Unmaps. Idempotent; the memory itself is left alone. */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      unmap.run();
    }
  }
}
