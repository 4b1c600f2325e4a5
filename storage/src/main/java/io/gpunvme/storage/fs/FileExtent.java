package io.gpunvme.storage.fs;

/**
 * A part of a file in one place.
 *
 * @param fileOffset first byte in the file
 * @param length bytes, above 0
 * @param deviceOffset first byte on the device; {@link #ZEROS}: nowhere, it reads as zeros (a hole,
 *     or space that was never written)
 */
public record FileExtent(long fileOffset, long length, long deviceOffset) {
  /** The device offset of a part without a place. */
  public static final long ZEROS = -1;

  /** Whether it has no place and reads as zeros. */
  public boolean isZeros() {
    return deviceOffset == ZEROS;
  }

  /** The first byte of the file after it. */
  public long end() {
    return fileOffset + length;
  }
}
