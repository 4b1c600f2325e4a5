package io.gpunvme.storage.fs;

import io.gpunvme.storage.fs.fat.FatKind;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** What a device or partition holds, by the signatures that file systems and others begin with. */
final class Signature {
  static final String EXT4 = "ext4";
  static final String FAT32 = FatKind.FAT32.label();

  private static final int SUPERBLOCK = 1024;
  private static final int EXT_MAGIC_AT = SUPERBLOCK + 56;
  private static final int EXT_MAGIC = 0xEF53;

  /** Others, each with a text at a place (libblkid's sources list them all). */
  private record Other(String name, int at, String text) {}

  private static final List<Other> OTHERS =
      List.of(
          new Other("xfs", 0, "XFSB"),
          new Other("btrfs", 0x10040, "_BHRfS_M"),
          new Other("f2fs", SUPERBLOCK, "\u0010 \u00F5\u00F2"),
          new Other("squashfs", 0, "hsqs"),
          new Other("erofs", SUPERBLOCK, "\u00E2\u00E1\u00F5\u00E0"),
          new Other("ISO 9660", 0x8001, "CD001"),
          new Other("LUKS (encrypted)", 0, "LUKS\u00BA\u00BE"),
          new Other("LVM2", 512 + 24, "LVM2 001"),
          new Other("Linux RAID", 4096, "\u00FCN+\u00A9"),
          new Other("swap", 4086, "SWAPSPACE2"));

  private Signature() {}

  /** Its name; empty if it is none of those known here. */
  static String of(BlockReader reader) {
    if (has(reader, EXT_MAGIC_AT, Short.BYTES)) {
      short magic = read(reader, EXT_MAGIC_AT, Short.BYTES).getShort(0);
      if (Short.toUnsignedInt(magic) == EXT_MAGIC) {
        return EXT4;
      }
    }
    FatKind fat = FatKind.of(reader);
    if (fat != FatKind.NONE) {
      return fat.label();
    }
    for (Other other : OTHERS) {
      int length = other.text().length();
      if (has(reader, other.at(), length)) {
        byte[] there = read(reader, other.at(), length).array();
        if (new String(there, StandardCharsets.ISO_8859_1).equals(other.text())) {
          return other.name();
        }
      }
    }
    return "";
  }

  /** Whether it is read here. */
  static boolean isRead(String name) {
    return name.equals(EXT4) || name.equals(FAT32);
  }

  private static boolean has(BlockReader reader, long at, int length) {
    return reader.size() >= at + length;
  }

  private static ByteBuffer read(BlockReader reader, long at, int length) {
    byte[] bytes = new byte[length];
    reader.read(at, MemorySegment.ofArray(bytes));
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }
}
