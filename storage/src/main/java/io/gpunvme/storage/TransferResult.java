package io.gpunvme.storage;

import io.gpunvme.storage.path.PathKind;

/**
 * The result of a transfer.
 *
 * @param path the path that ran
 * @param mode how it worked, in a few words
 * @param ranges how many
 * @param bytes the requested bytes that were moved
 * @param nanos wall-clock time
 */
public record TransferResult(PathKind path, String mode, int ranges, long bytes, long nanos) {
  /** 10^9 bytes per second. */
  public double gigabytesPerSecond() {
    return nanos == 0 ? 0 : (double) bytes / nanos;
  }
}
