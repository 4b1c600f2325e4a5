package io.gpunvme.sim.media;

import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;

/** Memory: pages are taken when first written and given back when trimmed, unless pinned. */
public final class RamMedia implements Media {
  private static final long HUGE_PAGE = 2L << 20;

  // Beyond this a namespace is meant to be mostly empty: a huge page for each block touched would
  // be a waste.
  private static final long LARGEST_FULL = 64L << 30;

  private final long size;
  private final Mapping mapping;
  private final MemorySegment memory;
  private boolean keepsPages;

  /**
   * Reserves {@code size} bytes of address space, which read as zeros.
   *
   * @throws PosixException if the system refuses
   */
  public RamMedia(long size) {
    this.size = size;
    mapping = Mapping.anonymous(size);
    memory = mapping.segment();
    if (size >= HUGE_PAGE && size <= LARGEST_FULL) {
      preferHugePages();
    }
  }

  /** Random reads of small blocks miss the TLB with each page of 4 KiB. */
  private void preferHugePages() {
    try {
      Posix.madvise(memory, Posix.MADV_HUGEPAGE);
    } catch (PosixException e) {
      // A kernel without them: slower, and nothing else.
    }
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public void read(long position, MemorySegment target, long offset, long length) {
    MemorySegment.copy(memory, position, target, offset, length);
  }

  @Override
  public void write(long position, MemorySegment source, long offset, long length) {
    MemorySegment.copy(source, offset, memory, position, length);
  }

  @Override
  public MemorySegment view(long position, long length) {
    return memory.asSlice(position, length);
  }

  /**
   * Keeps every page from now on: {@link #trim} zeroes instead. To be called before the memory is
   * pinned for a device, which would otherwise go on using pages that are not the medium's any
   * more.
   */
  public synchronized void keepPages() {
    keepsPages = true;
  }

  @Override
  public void zero(long position, long length) {
    memory.asSlice(position, length).fill((byte) 0);
  }

  @Override
  public void trim(long position, long length) throws IOException {
    long page = Posix.pageSize();
    long end = position + length;
    long firstPage = Math.ceilDiv(position, page) * page;
    long behindPages = end / page * page;
    if (firstPage >= behindPages) {
      zero(position, length);
      return;
    }
    zero(position, firstPage - position);
    zero(behindPages, end - behindPages);
    giveBack(firstPage, behindPages - firstPage);
  }

  private synchronized void giveBack(long position, long length) throws IOException {
    if (keepsPages) {
      zero(position, length);
      return;
    }
    try {
      Posix.madvise(memory.asSlice(position, length), Posix.MADV_DONTNEED);
    } catch (PosixException e) {
      throw new IOException(e.getMessage(), e);
    }
  }

  @Override
  public void flush() {}

  @Override
  public void close() {
    mapping.close();
  }
}
