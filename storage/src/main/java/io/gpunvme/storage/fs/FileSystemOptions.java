package io.gpunvme.storage.fs;

import io.gpunvme.base.InvalidRequestException;

/**
 * What the caller decides about reading a file system.
 *
 * @param partition number of the one that it is in; 0: it fills the device, or is in the only
 *     partition with one
 * @param sectorBytes of the device, 512 or 4096: what an MBR counts in
 * @param ignoreJournal go on although the journal holds changes that were not made yet; what is
 *     read may then be old, or contradict itself
 */
public record FileSystemOptions(int partition, int sectorBytes, boolean ignoreJournal) {
  /** Checks the numbers. */
  public FileSystemOptions {
    if (partition < 0) {
      throw new InvalidRequestException(
          "partition " + partition + ": partitions are numbered from 1");
    }
  }

  /** The whole device or its only partition, sectors of 512 bytes, no journal ignored. */
  public static FileSystemOptions defaults() {
    return new FileSystemOptions(0, 512, false);
  }

  /** The same in a partition. */
  public FileSystemOptions withPartition(int number) {
    return new FileSystemOptions(number, sectorBytes, ignoreJournal);
  }
}
