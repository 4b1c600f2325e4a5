package io.gpunvme.nvme.memory;

import io.gpunvme.base.InvalidRequestException;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

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

  private final @Nullable MemorySegment memory;
  private final long size;
  private final long base;
  private final long @Nullable [] granules;
  private final Runnable unmap;
  private final AtomicBoolean closed = new AtomicBoolean();

  private BusRange(
      @Nullable MemorySegment memory,
      long size,
      long base,
      long @Nullable [] granules,
      Runnable unmap) {
    this.memory = memory;
    this.size = size;
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
    checkAligned(base);
    return new BusRange(memory, memory.byteSize(), base, null, unmap);
  }

  /**
   * A range of memory the CPU cannot address, whose bus addresses are one run.
   *
   * @param size bytes, above 0
   * @param base bus address of the first byte, a multiple of 4096
   * @param unmap undoes the mapping; called once, by {@link #close}
   */
  public static BusRange remote(long size, long base, Runnable unmap) {
    checkAligned(base);
    if (size <= 0) {
      throw new IllegalArgumentException("a range of " + size + " bytes");
    }
    return new BusRange(null, size, base, null, unmap);
  }

  /**
   * A range of memory the CPU cannot address, with one bus address per 4096 bytes.
   *
   * @param size bytes, above 0
   * @param granules the address of each 4096-byte piece in order, multiples of 4096; copied
   * @param unmap undoes the mapping; called once, by {@link #close}
   */
  public static BusRange remote(long size, long[] granules, Runnable unmap) {
    if (size <= 0) {
      throw new IllegalArgumentException("a range of " + size + " bytes");
    }
    checkEnough(granules, size);
    for (long granule : granules) {
      checkAligned(granule);
    }
    return new BusRange(null, size, 0, granules.clone(), unmap);
  }

  private static void checkEnough(long[] granules, long size) {
    if ((long) granules.length << GRANULE_SHIFT < size) {
      throw new IllegalArgumentException(granules.length + " addresses for " + size + " bytes");
    }
  }

  private static void checkAligned(long base) {
    if ((base & (GRANULE - 1)) != 0) {
      throw new IllegalArgumentException("bus address " + Long.toHexString(base) + " not aligned");
    }
  }

  /**
   * A range with one bus address per 4096 bytes.
   *
   * @param granules the address of each 4096-byte piece in order; copied
   */
  public static BusRange scattered(MemorySegment memory, long[] granules, Runnable unmap) {
    checkEnough(granules, memory.byteSize());
    return new BusRange(memory, memory.byteSize(), 0, granules.clone(), unmap);
  }

  /**
   * The memory itself, as the CPU addresses it.
   *
   * @throws IllegalStateException if the CPU cannot: it {@link #isRemote}
   */
  public MemorySegment memory() {
    MemorySegment m = memory;
    if (m == null) {
      throw new IllegalStateException(
          "the CPU cannot address these " + size + " bytes: they are another device's memory");
    }
    return m;
  }

  /** Whether this is memory of another device, which only the controller and its owner reach. */
  public boolean isRemote() {
    return memory == null;
  }

  /** Size in bytes. */
  public long size() {
    return size;
  }

  /**
   * The bus address of a byte.
   *
   * @param offset 0 ≤ offset &lt; size
   */
  public long busAddress(long offset) {
    if (offset < 0 || offset >= size) {
      throw new InvalidRequestException(
          "offset " + offset + " is outside the mapped range of " + size + " bytes");
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
    long end = Math.min(size, offset + limit);
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
