package io.gpunvme.core.weights.format;

import io.gpunvme.core.fs.BlockReader;
import io.gpunvme.nvme.InvalidRequestException;
import java.lang.foreign.MemorySegment;

/** A file whose first bytes are given and the rest zeros, which counts what is read of it. */
final class MemoryReader implements BlockReader {
  private final byte[] head;
  private final long size;
  long bytesRead;
  long furthest;
  boolean closed;

  MemoryReader(byte[] bytes) {
    this(bytes, bytes.length);
  }

  MemoryReader(byte[] head, long size) {
    this.head = head;
    this.size = size;
  }

  @Override
  public String name() {
    return "memory";
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public void read(long offset, MemorySegment target) {
    long length = target.byteSize();
    if (closed || offset < 0 || length > size - offset) {
      throw new InvalidRequestException("%d bytes at %d".formatted(length, offset));
    }
    bytesRead += length;
    furthest = Math.max(furthest, offset + length);
    target.fill((byte) 0);
    if (offset < head.length) {
      long known = Math.min(length, head.length - offset);
      MemorySegment.copy(MemorySegment.ofArray(head), offset, target, 0, known);
    }
  }

  @Override
  public void close() {
    closed = true;
  }
}
