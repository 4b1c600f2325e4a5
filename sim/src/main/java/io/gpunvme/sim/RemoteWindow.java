package io.gpunvme.sim;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * A copy of the part of remote memory that is being looked at: lists of PRP entries and SGL
 * descriptors are read a page at a time instead of entry by entry. One list at a time; guarded by
 * the worker's lock.
 */
final class RemoteWindow {
  private static final long BYTES = 4096;

  private final RemoteChannels channels;
  private final Arena memory;
  private MemorySegment copy = MemorySegment.NULL;
  private @Nullable DmaRegion region;
  private long from;
  private long length;

  /**
   * @param memory the worker's
   */
  RemoteWindow(RemoteChannels channels, Arena memory) {
    this.channels = channels;
    this.memory = memory;
  }

  /** Another list begins: what was copied for the last one may have changed. */
  void forget() {
    region = null;
  }

  /**
   * Makes {@code bytes} at {@code offset} of a region readable.
   *
   * @param bytes at most 4096, inside the region
   * @return where in {@link #memory} they are
   * @throws RemoteFailure if they cannot be copied
   */
  long look(DmaRegion at, long offset, long bytes) {
    if (at != region || offset < from || offset + bytes > from + length) {
      if (copy.byteSize() == 0) {
        copy = memory.allocate(BYTES, Long.BYTES);
      }
      region = null;
      long pageEnd = (offset / BYTES + 1) * BYTES;
      // Regions are whole pages, so the page's end is inside too.
      long end = Math.max(pageEnd, offset + bytes);
      channels.of(at).read(offset, copy.asSlice(0, end - offset));
      region = at;
      from = offset;
      length = end - offset;
    }
    return offset - from;
  }

  /** What {@link #look} copied. */
  MemorySegment memory() {
    return copy;
  }
}
