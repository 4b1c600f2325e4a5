package io.gpunvme.storage.fs;

import io.gpunvme.storage.fs.FileSystemException.Kind;
import io.gpunvme.storage.fs.ext4.Ext4;
import io.gpunvme.storage.fs.ext4.Ext4Options;
import io.gpunvme.storage.fs.fat.Fat32;
import io.gpunvme.storage.fs.partition.Partition;
import io.gpunvme.storage.fs.partition.PartitionReader;
import io.gpunvme.storage.fs.partition.PartitionTable;
import io.gpunvme.storage.fs.partition.Partitions;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Finds the file system on a device, directly or through a partition table. */
public final class FileSystems {
  private FileSystems() {}

  /** As {@link #open(BlockReader, FileSystemOptions)} with {@link FileSystemOptions#defaults}. */
  public static OpenedFileSystem open(BlockReader device) {
    return open(device, FileSystemOptions.defaults());
  }

  /**
   * Opens the file system on a device.
   *
   * @param device the caller keeps it open, and closes it
   * @throws FileSystemException if there is none, or several, or it cannot be read; the message
   *     lists the partitions
   */
  public static OpenedFileSystem open(BlockReader device, FileSystemOptions options) {
    if (options.partition() > 0) {
      PartitionTable table = table(device, options.sectorBytes());
      return inPartition(device, table, named(device, table, options.partition()), options);
    }
    String whole = Signature.of(device);
    if (Signature.isRead(whole)) {
      return new OpenedFileSystem(read(device, whole, options), null, List.of());
    }
    Optional<PartitionTable> table = Partitions.find(device, options.sectorBytes());
    if (table.isEmpty() || table.get().partitions().isEmpty() && !whole.isEmpty()) {
      throw whole.isEmpty()
          ? new FileSystemException(
              Kind.NOT_FOUND,
              device.name(),
              "it has neither a known file system nor a partition table")
          : notRead(device, whole);
    }
    return inPartition(device, table.get(), single(device, table.get()), options);
  }

  /**
   * A partition with any content.
   *
   * @param number from 1
   * @param sectorBytes 512 or 4096: what the device has
   * @throws FileSystemException if there is none of that number, or no table that can be read
   */
  public static Partition partition(BlockReader device, int number, int sectorBytes) {
    return named(device, table(device, sectorBytes), number);
  }

  /**
   * The known content at the start of a device, as text for users: a file system, a partition
   * table, or another signature. Use it before you overwrite a device.
   *
   * @param sectorBytes 512 or 4096, the device's
   * @return empty if the content is unknown
   */
  public static String contents(BlockReader device, int sectorBytes) {
    String whole = Signature.of(device);
    if (!whole.isEmpty()) {
      return "a known signature (" + whole + ")";
    }
    try {
      return Partitions.find(device, sectorBytes)
          .map(t -> "a partition table (%s)".formatted(t.kind()))
          .orElse("");
    } catch (FileSystemException e) {
      return "a partition table that is damaged";
    }
  }

  private static PartitionTable table(BlockReader device, int sectorBytes) {
    return Partitions.find(device, sectorBytes)
        .orElseThrow(
            () ->
                new FileSystemException(
                    Kind.NOT_FOUND, device.name(), "the device has no partition table"));
  }

  private static Partition named(BlockReader device, PartitionTable table, int number) {
    for (Partition p : table.partitions()) {
      if (p.number() == number) {
        return p;
      }
    }
    throw new FileSystemException(
        Kind.NOT_FOUND,
        device.name(),
        "there is no partition #%d; there are: %s".formatted(number, contents(device, table)));
  }

  /** The only partition with a file system that is read. */
  private static Partition single(BlockReader device, PartitionTable table) {
    List<Partition> suitable = new ArrayList<>();
    for (Partition p : table.partitions()) {
      if (Signature.isRead(Signature.of(new PartitionReader(device, p)))) {
        suitable.add(p);
      }
    }
    if (suitable.size() != 1) {
      throw new FileSystemException(
          Kind.NOT_FOUND,
          device.name(),
          (suitable.isEmpty()
                  ? "no partition has a readable file system (ext4, FAT32): "
                  : "several partitions have a file system; name one (DEVICE#N:/PATH): ")
              + contents(device, table));
    }
    return suitable.getFirst();
  }

  /** Partitions with what is in them, and what is wrong with the table. */
  private static String contents(BlockReader device, PartitionTable table) {
    List<String> all = new ArrayList<>();
    for (Partition p : table.partitions()) {
      String what = Signature.of(new PartitionReader(device, p));
      all.add(p + " with " + (what.isEmpty() ? "nothing known" : what));
    }
    if (all.isEmpty()) {
      String whole = Signature.of(device);
      all.add(whole.isEmpty() ? "none, the table is empty" : "none, the whole device is " + whole);
    }
    all.addAll(table.notes());
    return String.join("; ", all);
  }

  private static OpenedFileSystem inPartition(
      BlockReader device, PartitionTable table, Partition partition, FileSystemOptions options) {
    PartitionReader reader = new PartitionReader(device, partition);
    FileSystem inside = read(reader, Signature.of(reader), options);
    return new OpenedFileSystem(
        new ShiftedFileSystem(inside, partition.firstByte()), partition, table.notes());
  }

  private static FileSystem read(BlockReader reader, String what, FileSystemOptions options) {
    if (what.equals(Signature.EXT4)) {
      return Ext4.open(reader, new Ext4Options(options.ignoreJournal()));
    }
    if (what.equals(Signature.FAT32)) {
      return Fat32.open(reader);
    }
    throw what.isEmpty()
        ? new FileSystemException(Kind.NOT_FOUND, reader.name(), "it has no known file system")
        : notRead(reader, what);
  }

  private static FileSystemException notRead(BlockReader reader, String what) {
    return new FileSystemException(
        Kind.UNSUPPORTED,
        reader.name(),
        "this is %s, which gpunvme cannot read; it reads ext4 and FAT32".formatted(what));
  }
}
