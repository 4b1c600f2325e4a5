package io.gpunvme.nvme.memory;

import io.gpunvme.base.CloseAll;
import java.lang.foreign.MemorySegment;

/**
 * Page-aligned host memory, zeroed, mapped for one controller, owned by its allocator.
 *
 * <p>Its memory comes from the controller's {@link BusMapper#allocate}: huge pages, or a memfd, so
 * CUDA and other processes can use the same pages. Closing unmaps it from the controller first and
 * then frees it; the caller makes sure that no command in flight still names it.
 */
public final class DmaBuffer implements AutoCloseable {
  private final HostMemory owned;
  private final BusRange range;

  private DmaBuffer(HostMemory owned, BusRange range) {
    this.owned = owned;
    this.range = range;
  }

  /**
   * Allocates and maps.
   *
   * @param bytes &gt; 0; rounded up to a multiple of the system's page size
   * @throws io.gpunvme.nvme.DmaMappingException if it cannot be mapped (nothing stays allocated)
   */
  public static DmaBuffer allocate(BusMapper mapper, long bytes) {
    HostMemory owned = mapper.allocate(bytes);
    return CloseAll.orClose(() -> new DmaBuffer(owned, mapper.map(owned.segment())), owned::close);
  }

  /** The memory; its lifetime ends with {@link #close}. */
  public MemorySegment memory() {
    return range.memory();
  }

  /** The memory with its bus addresses. */
  public BusRange range() {
    return range;
  }

  /** Size in bytes, a multiple of the page size. */
  public long size() {
    return range.size();
  }

  /** Bus address of the byte at {@code offset}. */
  public long busAddress(long offset) {
    return range.busAddress(offset);
  }

  @Override
  public void close() {
    try {
      range.close();
    } finally {
      owned.close();
    }
  }
}
