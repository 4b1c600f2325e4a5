package io.gpunvme.storage.fs;

import io.gpunvme.base.InvalidRequestException;

/**
 * The options for reading a file system.
 *
 * @param partition number of its partition; 0: the file system fills the device, or is in the only
 *     partition with a file system
 * @param sectorBytes of the device, 512 or 4096: the unit of an MBR
 * @param ignoreJournal read on although the journal has changes that are not in the file system
 *     yet; the data read may then be old, or contradict itself
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
  public FileSystemOptions in(int number) {
    return new FileSystemOptions(number, sectorBytes, ignoreJournal);
  }
}
