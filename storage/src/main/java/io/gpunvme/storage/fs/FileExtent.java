package io.gpunvme.storage.fs;

/**
 * Part of a file that is in one place.
 *
 * @param fileOffset first byte in the file
 * @param length bytes, above 0
 * @param deviceOffset first byte on the device; {@link #ZEROS}: nowhere, it reads as zeros (a hole,
 *     or space that was never written)
 */
public record FileExtent(long fileOffset, long length, long deviceOffset) {
  /** Instead of a place. */
  public static final long ZEROS = -1;

  /** Whether it is nowhere. */
  public boolean isZeros() {
    return deviceOffset == ZEROS;
  }

  /** First byte of the file behind it. */
  public long end() {
    return fileOffset + length;
  }
}
