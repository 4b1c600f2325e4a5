package io.gpunvme.core.fs;

import io.gpunvme.nvme.InvalidRequestException;
import java.lang.foreign.MemorySegment;

/** An array as a device. */
public final class BytesReader implements BlockReader {
  private final byte[] bytes;
  private long budget = Long.MAX_VALUE;

  /** A device of those very bytes. */
  public BytesReader(byte[] bytes) {
    this.bytes = bytes;
  }

  /** Lets no more than that many bytes be read from now on, so that an endless loop shows. */
  public void limit(long most) {
    budget = most;
  }

  @Override
  public String name() {
    return "image";
  }

  @Override
  public long size() {
    return bytes.length;
  }

  @Override
  public void read(long offset, MemorySegment target) {
    long length = target.byteSize();
    if (offset < 0 || length > bytes.length - offset) {
      // No caller may let that happen, whatever the image says.
      throw new AssertionError(
          new InvalidRequestException(length + " bytes at " + offset + " leave the image"));
    }
    budget -= length;
    if (budget < 0) {
      throw new AssertionError("far too much is read");
    }
    MemorySegment.copy(MemorySegment.ofArray(bytes), offset, target, 0, length);
  }
}
