package io.gpunvme.nvme.memory;

import io.gpunvme.nvme.spec.SglDescriptor;

/**
 * Scatter Gather Lists (Base 2.0, 4.1.2), for controllers that support them.
 *
 * <p>Memory that is one run on the bus needs a single Data Block descriptor inside the command.
 * Several runs become segments in list memory, one page each at most, chained by Segment and Last
 * Segment descriptors.
 */
public final class SglBuilder implements DataPointerBuilder {
  /** PSDT 01b: SGL, metadata pointer (unused here) is a plain address. */
  private static final int PSDT_SGL = 1;

  private final ListMemory lists;
  private final int pageSize;
  private final int perSegment;
  private final long maxBytes;
  private final long bytesPerSlot;
  private long low;
  private long high;

  /**
   * @param range where segments live, at {@code offset}: {@link #memoryBytes} bytes, page aligned
   * @param slots command slots of the queue
   * @param pageSize bytes, a power of two ≥ 4096: no segment crosses a page
   * @param maxBytes the longest transfer of one command
   */
  public SglBuilder(BusRange range, long offset, int slots, int pageSize, long maxBytes) {
    this.bytesPerSlot = bytesPerSlot(pageSize, maxBytes);
    this.lists = new ListMemory(range, offset, slots, bytesPerSlot, pageSize);
    this.pageSize = pageSize;
    this.perSegment = pageSize / SglDescriptor.SIZE;
    this.maxBytes = maxBytes;
  }

  /** Bytes of list memory that {@code slots} slots need, a multiple of the page size. */
  public static long memoryBytes(int slots, int pageSize, long maxBytes) {
    return slots * bytesPerSlot(pageSize, maxBytes);
  }

  private static long bytesPerSlot(int pageSize, long maxBytes) {
    long perSegment = pageSize / SglDescriptor.SIZE;
    long runs = Math.ceilDiv(maxBytes, BusRange.GRANULE) + 1;
    return Math.ceilDiv(runs, perSegment - 1) * pageSize;
  }

  @Override
  public void build(int slot, BusRange data, long offset, long length) {
    ListMemory.check(data, offset, length, maxBytes);
    if (data.contiguous(offset, length) == length) {
      low = data.busAddress(offset);
      high = SglDescriptor.dptr2(SglDescriptor.DATA_BLOCK, (int) length);
      return;
    }
    int runs = countRuns(data, offset, length);
    long segment = lists.offset(slot);
    low = lists.busAddress(segment);
    high = SglDescriptor.dptr2(segmentType(runs), segmentBytes(runs));
    fill(segment, runs, data, offset, length);
  }

  private void fill(long firstSegment, int runs, BusRange data, long offset, long length) {
    long segment = firstSegment;
    long at = offset;
    long rest = length;
    for (int left = runs; left > 0; segment += pageSize) {
      int blocks = left <= perSegment ? left : perSegment - 1;
      long descriptor = segment;
      for (int i = 0; i < blocks; i++, descriptor += SglDescriptor.SIZE) {
        long run = data.contiguous(at, rest);
        put(descriptor, SglDescriptor.DATA_BLOCK, data.busAddress(at), (int) run);
        at += run;
        rest -= run;
      }
      left -= blocks;
      if (left > 0) {
        put(
            descriptor,
            segmentType(left),
            lists.busAddress(segment + pageSize),
            segmentBytes(left));
      }
    }
  }

  /**
   * The type of the descriptor that points to a segment when {@code left} runs are still to come.
   */
  private int segmentType(int left) {
    return left <= perSegment ? SglDescriptor.LAST_SEGMENT : SglDescriptor.SEGMENT;
  }

  private int segmentBytes(int left) {
    return Math.min(left, perSegment) * SglDescriptor.SIZE;
  }

  private void put(long descriptor, int type, long address, int bytes) {
    SglDescriptor.put(lists.memory(), descriptor, type, address, bytes);
  }

  private static int countRuns(BusRange data, long offset, long length) {
    int runs = 0;
    for (long at = offset, rest = length; rest > 0; runs++) {
      long run = data.contiguous(at, rest);
      at += run;
      rest -= run;
    }
    return runs;
  }

  @Override
  public long dptr1() {
    return low;
  }

  @Override
  public long dptr2() {
    return high;
  }

  @Override
  public int psdt() {
    return PSDT_SGL;
  }

  @Override
  public long bytesPerSlot() {
    return bytesPerSlot;
  }
}
