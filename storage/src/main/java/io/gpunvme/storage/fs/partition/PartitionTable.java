package io.gpunvme.storage.fs.partition;

import java.util.List;

/**
 * The partitions of a device.
 *
 * @param kind of table
 * @param sectorBytes the unit of the table
 * @param partitions that lie on the device, by number
 * @param notes irregularities and how they were handled; mostly empty
 */
public record PartitionTable(
    Kind kind, int sectorBytes, List<Partition> partitions, List<String> notes) {
  /** Kinds of tables. */
  public enum Kind {
    /** GUID partition table. */
    GPT,
    /** The four entries of a master boot record, and the chains that they lead to. */
    MBR
  }

  /** Keeps copies. */
  public PartitionTable {
    partitions = List.copyOf(partitions);
    notes = List.copyOf(notes);
  }
}
