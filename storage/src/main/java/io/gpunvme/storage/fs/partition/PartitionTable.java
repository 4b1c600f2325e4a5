package io.gpunvme.storage.fs.partition;

import java.util.List;

/**
 * The parts of a device.
 *
 * @param kind of table
 * @param sectorBytes what the table counts in
 * @param partitions that lie on the device, by number
 * @param notes what is not as it should be, and what was done about it; mostly empty
 */
public record PartitionTable(
    Kind kind, int sectorBytes, List<Partition> partitions, List<String> notes) {
  /** Kinds of tables. */
  public enum Kind {
    /** GUID partition table. */
    GPT,
    /** The four entries of a master boot record, and what they lead to. */
    MBR
  }

  /** Keeps copies. */
  public PartitionTable {
    partitions = List.copyOf(partitions);
    notes = List.copyOf(notes);
  }
}
