package io.gpunvme.models.raw;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.storage.fs.BlockReader;
import java.lang.foreign.MemorySegment;

/** A device in memory that counts what is read of it. */
final class MemoryDevice implements BlockReader {
  private final byte[] bytes;
  long bytesRead;

  MemoryDevice(byte[] bytes) {
    this.bytes = bytes;
  }

  @Override
  public String name() {
    return "memory";
  }

  @Override
  public long size() {
    return bytes.length;
  }

  @Override
  public void read(long offset, MemorySegment target) {
    long length = target.byteSize();
    if (offset < 0 || length > bytes.length - offset) {
      throw new InvalidRequestException("%d bytes at %d".formatted(length, offset));
    }
    bytesRead += length;
    MemorySegment.copy(MemorySegment.ofArray(bytes), offset, target, 0, length);
  }
}
