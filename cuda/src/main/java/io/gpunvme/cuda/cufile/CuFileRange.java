package io.gpunvme.cuda.cufile;

import java.util.Objects;

/**
 * Bytes of a file and their place in memory. Nothing needs to be aligned; multiples of 4096 are
 * fastest.
 *
 * @param fileOffset first byte in the file
 * @param bufferOffset first byte in the memory
 * @param bytes how many, 0 or more
 */
public record CuFileRange(long fileOffset, long bufferOffset, long bytes) {
  /** Checks the signs. */
  public CuFileRange {
    if (fileOffset < 0 || bytes < 0 || fileOffset > Long.MAX_VALUE - bytes) {
      throw new IllegalArgumentException(bytes + " bytes at " + fileOffset + " of a file");
    }
  }

  void checkInside(long memoryBytes) {
    Objects.checkFromIndexSize(bufferOffset, bytes, memoryBytes);
  }

  @Override
  public String toString() {
    return bytes + " bytes at " + fileOffset;
  }
}
