package io.gpunvme.nvme.memory;

import io.gpunvme.base.InvalidRequestException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * Physical Region Page entries and lists (Base 2.0, 4.1.1).
 *
 * <p>PRP1 may start inside a page, every later entry is page aligned. Two pages fit into PRP1 and
 * PRP2; more need a list that PRP2 points to. A list page that is full while more entries follow
 * ends in a pointer to the next list page.
 */
public final class PrpBuilder implements DataPointerBuilder {
  private static final VarHandle ENTRY =
      ValueLayout.JAVA_LONG
          .withOrder(ByteOrder.LITTLE_ENDIAN)
          .varHandle()
          .withInvokeExactBehavior();

  private final ListMemory lists;
  private final MemorySegment listMemory;
  private final int pageSize;
  private final long maxBytes;
  private final long bytesPerSlot;
  private long prp1;
  private long prp2;

  /**
   * @param range where the lists live, at {@code offset}: {@link #memoryBytes} bytes, page aligned
   * @param slots command slots of the queue
   * @param pageSize the controller's memory page size (CC.MPS) in bytes, a power of two ≥ 4096
   * @param maxBytes the longest transfer of one command
   */
  public PrpBuilder(BusRange range, long offset, int slots, int pageSize, long maxBytes) {
    this.bytesPerSlot = bytesPerSlot(pageSize, maxBytes);
    this.lists = new ListMemory(range, offset, slots, bytesPerSlot, pageSize);
    this.listMemory = lists.memory();
    this.pageSize = pageSize;
    this.maxBytes = maxBytes;
  }

  /** Bytes of list memory that {@code slots} slots need, a multiple of the page size. */
  public static long memoryBytes(int slots, int pageSize, long maxBytes) {
    return Math.ceilDiv(slots * bytesPerSlot(pageSize, maxBytes), pageSize) * pageSize;
  }

  /**
   * List bytes for the longest transfer: its pages after the first, plus one when it starts inside
   * a page, plus a chain pointer per full list page.
   */
  static long bytesPerSlot(int pageSize, long maxBytes) {
    long entries = Math.max(1, Math.ceilDiv(maxBytes, pageSize));
    long perPage = pageSize / Long.BYTES;
    if (entries <= perPage) {
      return Long.highestOneBit(2 * entries * Long.BYTES - 1);
    }
    return Math.ceilDiv(entries - 1, perPage - 1) * pageSize;
  }

  @Override
  public void build(int slot, BusRange data, long offset, long length) {
    ListMemory.check(data, offset, length, maxBytes);
    long address = data.busAddress(offset);
    if ((address & 3) != 0) {
      throw new InvalidRequestException(
          "data at offset " + offset + " is not 4-byte aligned, as a PRP must be");
    }
    long first = Math.min(length, pageSize - (address & (pageSize - 1)));
    requireContiguous(data, offset, first);
    prp1 = address;
    long rest = length - first;
    long at = offset + first;
    if (rest == 0) {
      prp2 = 0;
    } else if (rest <= pageSize) {
      requireContiguous(data, at, rest);
      prp2 = data.busAddress(at);
    } else {
      prp2 = list(lists.offset(slot), data, at, rest);
    }
  }

  private long list(long listOffset, BusRange data, long from, long bytes) {
    long entries = Math.ceilDiv(bytes, pageSize);
    long at = from;
    long rest = bytes;
    long address = 0;
    long run = 0;
    long entryOffset = listOffset;
    for (long left = entries; left > 0; left--) {
      if (((entryOffset + Long.BYTES) & (pageSize - 1)) == 0 && left > 1) {
        ENTRY.set(listMemory, entryOffset, lists.busAddress(entryOffset + Long.BYTES));
        entryOffset += Long.BYTES;
      }
      if (run == 0) {
        run = data.contiguous(at, rest);
        address = data.busAddress(at);
        if ((address & (pageSize - 1)) != 0 || (run < rest && run % pageSize != 0)) {
          throw new InvalidRequestException(
              "data is scattered in pieces smaller than the controller's page of "
                  + pageSize
                  + " bytes");
        }
      }
      ENTRY.set(listMemory, entryOffset, address);
      entryOffset += Long.BYTES;
      long step = Math.min(pageSize, rest);
      address += step;
      at += step;
      rest -= step;
      run -= step;
    }
    return lists.busAddress(listOffset);
  }

  private static void requireContiguous(BusRange data, long offset, long bytes) {
    if (data.contiguous(offset, bytes) < bytes) {
      throw new InvalidRequestException(
          "the page at offset "
              + offset
              + " is scattered on the bus; use a smaller page size (MPS)");
    }
  }

  @Override
  public long dptr1() {
    return prp1;
  }

  @Override
  public long dptr2() {
    return prp2;
  }

  @Override
  public int psdt() {
    return 0;
  }

  @Override
  public long bytesPerSlot() {
    return bytesPerSlot;
  }
}
