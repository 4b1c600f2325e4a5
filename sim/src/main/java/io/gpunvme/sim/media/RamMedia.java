package io.gpunvme.sim.media;

import io.gpunvme.base.CloseAll;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.MemoryBudget;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;

/**
 * Memory: pages are taken when first written and given back when trimmed, unless pinned. {@link
 * RamPages} says which, and what happens when the machine has no more.
 */
public final class RamMedia implements Media {
  private final long size;
  private final Mapping mapping;
  private final MemorySegment memory;
  private final RamPages pages;
  private boolean keepsPages;

  /**
   * Reserves {@code size} bytes of address space, which read as zeros.
   *
   * @throws PosixException if the system refuses
   */
  public RamMedia(long size) {
    this(size, MemoryBudget.here(), RamPages.QUICK_NANOS);
  }

  /** With memory of that budget, and that idea of quick. */
  RamMedia(long size, MemoryBudget budget, long quickNanos) {
    this.size = size;
    // A huge page begins at a multiple of its size.
    mapping = Mapping.anonymous(size + RamPages.PIECE);
    MemorySegment all = mapping.segment();
    memory = all.asSlice(-all.address() & (RamPages.PIECE - 1), size);
    pages = new RamPages(memory, budget, quickNanos);
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
  public void write(long position, MemorySegment source, long offset, long length)
      throws IOException {
    pages.prepare(position, length);
    MemorySegment.copy(source, offset, memory, position, length);
  }

  @Override
  public void prepare(long position, long length) throws IOException {
    pages.prepare(position, length);
  }

  @Override
  public MemorySegment view(long position, long length) {
    return memory.asSlice(position, length);
  }

  /**
   * Takes every page now, and keeps it: {@link #trim} zeroes instead. To be called before the
   * memory is pinned for a device, which would otherwise go on using pages that are not the
   * medium's any more.
   *
   * @throws NoSpaceException if the machine has not that much memory
   */
  public synchronized void keepPages() throws NoSpaceException {
    pages.takeAll();
    keepsPages = true;
  }

  @Override
  public void zero(long position, long length) throws IOException {
    pages.prepare(position, length);
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
      pages.givenBack(position, length);
    } catch (PosixException e) {
      throw new IOException(e.getMessage(), e);
    }
  }

  @Override
  public void flush() {}

  @Override
  public void close() {
    CloseAll.all(pages, mapping);
  }
}
