package io.gpunvme.storage;

import io.gpunvme.storage.path.PathKind;

/**
 * What a transfer was.
 *
 * @param path the path that ran
 * @param mode how it worked, in a few words
 * @param ranges how many
 * @param bytes moved, as asked for
 * @param nanos wall-clock time
 */
public record TransferResult(PathKind path, String mode, int ranges, long bytes, long nanos) {
  /** 10^9 bytes per second. */
  public double gigabytesPerSecond() {
    return nanos == 0 ? 0 : (double) bytes / nanos;
  }
}
