package io.gpunvme.sim.media;

import java.lang.foreign.MemorySegment;

/** Stores nothing: writes are discarded, and a read leaves the target as it is. For measuring. */
public final class NullMedia implements Media {
  private final long size;

  /** A medium of {@code size} bytes. */
  public NullMedia(long size) {
    this.size = size;
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public void read(long position, MemorySegment target, long offset, long length) {}

  @Override
  public void write(long position, MemorySegment source, long offset, long length) {}

  @Override
  public boolean keepsData() {
    return false;
  }

  @Override
  public void zero(long position, long length) {}

  @Override
  public void trim(long position, long length) {}

  @Override
  public void flush() {}

  @Override
  public void close() {}
}
