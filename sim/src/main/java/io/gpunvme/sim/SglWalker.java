package io.gpunvme.sim;

import io.gpunvme.nvme.spec.SglDescriptor;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;

/**
 * Resolves a scatter gather list (Base 2.0, 4.1.2): data blocks, bit buckets, segments and last
 * segments, data lengths that add up to exactly the transfer. One per command; reusable.
 */
final class SglWalker {
  /** A list longer than this is refused: the host could chain segments for ever. */
  private static final int MAX_DESCRIPTORS = 1 << 16;

  private static final int OK = 0;

  private final DmaSpace dma;
  private final RemoteWindow window;
  private final DmaRegion bitBucket;
  private final ScatterList out;

  private boolean toHost;
  private long remaining;
  private int descriptors;

  /** The segment to go to next; {@code nextBytes} is 0 when there is none. */
  private long nextAddress;

  private long nextBytes;
  private boolean nextIsLast;

  /**
   * @param bitBucket where data nobody wants may be written
   */
  SglWalker(DmaSpace dma, RemoteWindow window, DmaRegion bitBucket, ScatterList out) {
    this.dma = dma;
    this.window = window;
    this.bitBucket = bitBucket;
    this.out = out;
  }

  /**
   * Resolves the list that starts with the descriptor in a command.
   *
   * @param toHost the direction of the transfer: bit buckets count only towards the host
   * @return a status, 0 if {@code out} now holds exactly {@code bytes} bytes
   * @throws RemoteFailure if a segment is in remote memory that cannot be reached
   */
  int walk(MemorySegment sqe, long bytes, boolean toHost) {
    this.toHost = toHost;
    remaining = bytes;
    descriptors = 1;
    nextBytes = 0;
    window.forget();
    int status = take(sqe, Sqe.DPTR1, true);
    while (status == OK && nextBytes != 0) {
      status = segment();
    }
    if (status != OK) {
      return status;
    }
    return remaining == 0 ? OK : StatusCode.DATA_SGL_LENGTH_INVALID.dnr();
  }

  private int segment() {
    long address = nextAddress;
    long bytes = nextBytes;
    boolean last = nextIsLast;
    nextBytes = 0;
    descriptors += (int) (bytes / SglDescriptor.SIZE);
    if (descriptors > MAX_DESCRIPTORS) {
      return StatusCode.INVALID_SGL_DESCRIPTOR_COUNT.dnr();
    }
    DmaRegion r = dma.find(address, bytes, DmaAccess.READ);
    if (r == null) {
      return StatusCode.DATA_TRANSFER_ERROR.status();
    }
    long from = r.offset(address);
    for (long at = 0; at < bytes; at += SglDescriptor.SIZE) {
      boolean mayPointOn = !last && at + SglDescriptor.SIZE == bytes;
      int status = take(r, from + at, mayPointOn);
      if (status != OK) {
        return status;
      }
    }
    // Only the last segment ends the list.
    return last || nextBytes != 0 ? OK : StatusCode.INVALID_SGL_SEGMENT_DESCRIPTOR.dnr();
  }

  private int take(DmaRegion r, long off, boolean mayPointOn) {
    if (r.isRemote()) {
      long found = window.look(r, off, SglDescriptor.SIZE);
      return take(window.memory(), found, mayPointOn);
    }
    return take(r.memory(), off, mayPointOn);
  }

  private int take(MemorySegment s, long off, boolean mayPointOn) {
    if (SglDescriptor.subtype(s, off) != SglDescriptor.SUBTYPE_ADDRESS) {
      return StatusCode.SGL_DESCRIPTOR_TYPE_INVALID.dnr();
    }
    long address = SglDescriptor.address(s, off);
    long length = SglDescriptor.length(s, off);
    return switch (SglDescriptor.type(s, off)) {
      case SglDescriptor.DATA_BLOCK -> dataBlock(address, length);
      case SglDescriptor.BIT_BUCKET -> bitBucket(length);
      case SglDescriptor.SEGMENT -> pointOn(mayPointOn, address, length, false);
      case SglDescriptor.LAST_SEGMENT -> pointOn(mayPointOn, address, length, true);
      default -> StatusCode.SGL_DESCRIPTOR_TYPE_INVALID.dnr();
    };
  }

  private int dataBlock(long address, long length) {
    if (length > remaining) {
      return StatusCode.DATA_SGL_LENGTH_INVALID.dnr();
    }
    if (length == 0) {
      return OK;
    }
    DmaRegion r = dma.find(address, length, toHost ? DmaAccess.WRITE : DmaAccess.READ);
    if (r == null) {
      return StatusCode.DATA_TRANSFER_ERROR.status();
    }
    out.add(r, r.offset(address), length);
    remaining -= length;
    return OK;
  }

  private int bitBucket(long length) {
    if (!toHost) {
      return OK;
    }
    if (length > remaining) {
      return StatusCode.DATA_SGL_LENGTH_INVALID.dnr();
    }
    remaining -= length;
    for (long left = length; left > 0; left -= bitBucket.size()) {
      out.add(bitBucket, 0, Math.min(left, bitBucket.size()));
    }
    return OK;
  }

  private int pointOn(boolean allowed, long address, long length, boolean last) {
    if (!allowed || length == 0 || length % SglDescriptor.SIZE != 0 || address % Long.BYTES != 0) {
      return StatusCode.INVALID_SGL_SEGMENT_DESCRIPTOR.dnr();
    }
    nextAddress = address;
    nextBytes = length;
    nextIsLast = last;
    return OK;
  }
}
