package io.gpunvme.storage.path;

/**
 * What a path has read.
 *
 * @param bytes that were asked for
 * @param overread bytes that were read with them and not asked for
 */
public record ReadBytes(long bytes, long overread) {
  /** Both together. */
  public ReadBytes plus(ReadBytes more) {
    return new ReadBytes(bytes + more.bytes, overread + more.overread);
  }
}
