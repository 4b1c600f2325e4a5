package io.gpunvme.storage.fs.partition;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.storage.fs.BlockReader;
import java.util.Optional;

/** Finds partition tables. */
public final class Partitions {
  private static final int[] SECTORS = {512, 4096};

  private Partitions() {}

  /**
   * Reads the table of a device whose sector size is not certain: an image may come from a device
   * with another size.
   *
   * @param sectorBytes 512 or 4096: the device's, which a GPT may contradict
   * @return empty if there is none
   * @throws io.gpunvme.storage.fs.FileSystemException if there is one that cannot be read
   */
  public static Optional<PartitionTable> find(BlockReader device, int sectorBytes) {
    int other = SECTORS[0] + SECTORS[1] - sectorBytes;
    if (!Gpt.isThere(sectors(device, sectorBytes)) && Gpt.isThere(sectors(device, other))) {
      Optional<PartitionTable> table = read(device, other);
      if (table.isPresent() && table.get().kind() == PartitionTable.Kind.GPT) {
        return table;
      }
    }
    return read(device, sectorBytes);
  }

  /**
   * Reads the table of a device.
   *
   * @param sectorBytes 512 or 4096
   * @return empty if there is none
   * @throws io.gpunvme.storage.fs.FileSystemException if there is one that cannot be read
   */
  public static Optional<PartitionTable> read(BlockReader device, int sectorBytes) {
    Sectors sectors = sectors(device, sectorBytes);
    Mbr mbr = Mbr.read(sectors);
    if (mbr.isProtective() || !mbr.isThere() && Gpt.isThere(sectors)) {
      return Optional.of(Gpt.read(sectors, mbr.isThere()));
    }
    return mbr.isThere() ? Optional.of(mbr.table()) : Optional.empty();
  }

  private static Sectors sectors(BlockReader device, int bytes) {
    if (bytes != SECTORS[0] && bytes != SECTORS[1]) {
      throw new InvalidRequestException("sectors of " + bytes + " bytes: must be 512 or 4096");
    }
    return new Sectors(device, bytes);
  }
}
