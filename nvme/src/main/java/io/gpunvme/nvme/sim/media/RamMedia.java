package io.gpunvme.nvme.sim.media;

import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;

/** Memory: pages are taken when first written and given back when trimmed. */
public final class RamMedia implements Media {
  private final long size;
  private final Mapping mapping;
  private final MemorySegment memory;

  /**
   * Reserves {@code size} bytes of address space, which read as zeros.
   *
   * @throws PosixException if the system refuses
   */
  public RamMedia(long size) {
    this.size = size;
    mapping = Mapping.anonymous(size);
    memory = mapping.segment();
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
    try {
      Posix.madvise(memory.asSlice(firstPage, behindPages - firstPage), Posix.MADV_DONTNEED);
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
