package io.gpunvme.nvme.sim;

import java.lang.foreign.MemorySegment;

/**
 * A run of bus addresses and the memory behind it. Immutable.
 *
 * @param base first bus address, a multiple of 4096
 * @param size bytes, a multiple of 4096
 * @param memory as many bytes
 * @param internal the controller's own memory: reaching it is no DMA
 */
record DmaRegion(long base, long size, MemorySegment memory, boolean internal) {
  /** Whether all of {@code length} bytes from {@code address} on lie inside. */
  boolean contains(long address, long length) {
    long offset = address - base;
    // Negative and enormous offsets alike fail the first test, so that nothing can overflow.
    return Long.compareUnsigned(offset, size) < 0 && length <= size - offset;
  }

  /** Where in {@link #memory} a bus address lies that this region contains. */
  long offset(long address) {
    return address - base;
  }
}
