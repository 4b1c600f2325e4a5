package io.gpunvme.storage.path.pinned;

import io.gpunvme.base.Align;
import io.gpunvme.storage.path.Range;

/**
 * Cuts ranges into I/Os and packs these into the loads of one {@link IoList}: an I/O for each piece
 * of a range, none longer than a load. Near neighbours are not put together here; who wants that
 * hands in ranges that are.
 */
final class LoadFiller {
  /** I/Os through the page cache start here in a slot: where the CPU's caches do. */
  private static final int LINE = 64;

  private final IoList list = new IoList();
  private final int loadBytes;
  private final int loadIos;
  private final int alignment;
  private final int memoryAlignment;

  /** Bytes and I/Os in the load that is being filled. */
  private int place;

  private long straightBytes;
  private int ios;

  /**
   * @param loadBytes most bytes of a load, a power of two that is a multiple of both alignments
   * @param loadIos most I/Os of a load
   * @param alignment of offsets and lengths; 1 for none
   * @param memoryAlignment of addresses; 1 for none
   */
  LoadFiller(int loadBytes, int loadIos, int alignment, int memoryAlignment) {
    this.loadBytes = loadBytes;
    this.loadIos = loadIos;
    this.alignment = alignment;
    this.memoryAlignment = Math.max(LINE, memoryAlignment);
  }

  /** What came of it; nothing is added afterwards. */
  IoList finish() {
    list.endLoad();
    return list;
  }

  /**
   * Adds part of a range through a slot. Reads are widened to whole blocks; parts that are written
   * have them already.
   *
   * @param at first byte, from the start of the range
   */
  void stage(int index, Range range, long at, long bytes) {
    long from = range.offset() + at;
    long end = from + bytes;
    while (from < end) {
      long start = down(from);
      long to = Math.min(end, start + loadBytes);
      int length = (int) (up(to) - start);
      if (place + length > loadBytes || ios == loadIos) {
        endLoad();
      }
      int skip = (int) (from - start);
      long bufferOffset = range.bufferOffset() + from - range.offset();
      list.add(start, length, place, skip, (int) (to - from), index, bufferOffset);
      place += (int) Align.up(length, memoryAlignment);
      ios++;
      from = to;
    }
  }

  /**
   * Adds part of a range whose buffer is host memory: where blocks of the file and of memory agree,
   * I/O is done in the buffer itself, the rest goes through a slot.
   *
   * @param address of the first byte of the part in memory
   */
  void straight(int index, Range range, long at, long bytes, long address) {
    long from = range.offset() + at;
    long end = from + bytes;
    long first = up(from);
    long last = down(end);
    boolean agree = alignment == 1 || (address + first - from) % memoryAlignment == 0;
    if (!agree || first >= last) {
      stage(index, range, at, bytes);
      return;
    }
    stage(index, range, at, first - from);
    for (long start = first; start < last; ) {
      int length = (int) Math.min(last - start, loadBytes);
      if (straightBytes + length > loadBytes || ios == loadIos) {
        endLoad();
      }
      long bufferOffset = range.bufferOffset() + start - range.offset();
      list.add(start, length, IoList.STRAIGHT, 0, length, index, bufferOffset);
      straightBytes += length;
      ios++;
      start += length;
    }
    stage(index, range, at + last - from, end - last);
  }

  private void endLoad() {
    list.endLoad();
    place = 0;
    straightBytes = 0;
    ios = 0;
  }

  private long down(long offset) {
    return offset & -(long) alignment;
  }

  private long up(long offset) {
    return down(offset + alignment - 1);
  }
}
