package io.gpunvme.nvme.memory;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.DmaMappingException;
import java.lang.foreign.MemorySegment;

/**
 * List memory for the slots of one queue: {@code slots} strides, each either inside one page or a
 * whole number of pages, with the bus address of every page looked up once.
 */
final class ListMemory {
  private final MemorySegment memory;
  private final long stride;
  private final int pageShift;
  private final long[] pageBus;

  /**
   * @param stride bytes per slot: a power of two up to a page, or a multiple of the page size
   */
  ListMemory(BusRange range, long offset, int slots, long stride, int pageSize) {
    if (stride <= 0 || (stride < pageSize ? Long.bitCount(stride) != 1 : stride % pageSize != 0)) {
      throw new IllegalArgumentException("stride " + stride + " and page size " + pageSize);
    }
    long bytes = Math.ceilDiv(slots * stride, pageSize) * pageSize;
    this.memory = range.memory().asSlice(offset, bytes);
    this.stride = stride;
    this.pageShift = Integer.numberOfTrailingZeros(pageSize);
    this.pageBus = new long[Math.toIntExact(bytes >>> pageShift)];
    for (int i = 0; i < pageBus.length; i++) {
      long at = offset + ((long) i << pageShift);
      if (range.contiguous(at, pageSize) != pageSize) {
        throw new DmaMappingException(
            "a list page of " + pageSize + " bytes is not contiguous on the bus");
      }
      pageBus[i] = range.busAddress(at);
    }
  }

  MemorySegment memory() {
    return memory;
  }

  long offset(int slot) {
    return slot * stride;
  }

  long busAddress(long offset) {
    return pageBus[(int) (offset >>> pageShift)] + (offset & ((1L << pageShift) - 1));
  }

  static void check(BusRange data, long offset, long length, long maxBytes) {
    if (offset < 0 || length <= 0 || length > data.size() - offset) {
      throw new InvalidRequestException(
          length
              + " bytes at offset "
              + offset
              + " are not inside the buffer of "
              + data.size()
              + " bytes");
    }
    if (length > maxBytes) {
      throw new InvalidRequestException(
          length + " bytes in one command, but this queue takes at most " + maxBytes);
    }
  }
}
