package io.gpunvme.storage.fs.fat;

import io.gpunvme.storage.fs.BlockReader;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** What a volume's first sector looks like, as far as it is one of this family. */
public enum FatKind {
  /** Nothing of the family. */
  NONE(""),
  /** At most 4084 clusters: floppies. */
  FAT12("FAT12"),
  /** At most 65524 clusters. */
  FAT16("FAT16"),
  /** The one that is read here. */
  FAT32("vfat"),
  /** No more than a relative: its boot sector has nothing else in common. */
  EXFAT("exFAT"),
  /** Likewise. */
  NTFS("NTFS");

  private static final int NAME_AT = 3;
  private static final int NAME_BYTES = 8;
  private static final int TYPE_AT = 82;
  private static final int MOST_FAT12 = 4084;

  private final String label;

  FatKind(String label) {
    this.label = label;
  }

  /** The name to be shown; FAT32 is {@code vfat}, as {@code mount -t} has it. */
  public String label() {
    return label;
  }

  /**
   * Recognises a volume. A damaged one of FAT32 is recognised as long as its signatures are there:
   * {@link Fat32#open} says what is wrong with it.
   *
   * @throws io.gpunvme.storage.path.StorageException if it cannot be read
   */
  public static FatKind of(BlockReader reader) {
    if (reader.size() < BootSector.BYTES) {
      return NONE;
    }
    byte[] bytes = new byte[BootSector.BYTES];
    reader.read(0, MemorySegment.ofArray(bytes));
    return of(ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN));
  }

  static FatKind of(ByteBuffer sector) {
    switch (text(sector, NAME_AT)) {
      case "EXFAT   " -> {
        return EXFAT;
      }
      case "NTFS    " -> {
        return NTFS;
      }
      default -> {}
    }
    boolean signed = u16(sector, BootSector.SIGNATURE_AT) == BootSector.SIGNATURE;
    if (signed && text(sector, TYPE_AT).equals("FAT32   ")) {
      return FAT32;
    }
    if (!BootSector.plausible(sector)) {
      return NONE;
    }
    if (u16(sector, BootSector.FAT_SIZE_16) == 0) {
      boolean has = sector.getInt(BootSector.FAT_SIZE_32) != 0;
      return has && u16(sector, BootSector.ROOT_ENTRIES) == 0 ? FAT32 : NONE;
    }
    return BootSector.clusters(sector) <= MOST_FAT12 ? FAT12 : FAT16;
  }

  private static String text(ByteBuffer sector, int at) {
    byte[] bytes = new byte[NAME_BYTES];
    sector.get(at, bytes);
    return new String(bytes, StandardCharsets.ISO_8859_1);
  }

  private static int u16(ByteBuffer sector, int at) {
    return Short.toUnsignedInt(sector.getShort(at));
  }
}
