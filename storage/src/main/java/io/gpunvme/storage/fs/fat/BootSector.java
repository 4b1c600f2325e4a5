package io.gpunvme.storage.fs.fat;

import io.gpunvme.storage.fs.BlockReader;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.FileSystemException.Kind;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Where everything is on a FAT32 volume (specification: "Boot Sector and BPB", "FAT32 BPB"). FSInfo
 * and the copy of the boot sector are not needed to read, and not looked at.
 *
 * @param clusterBytes a power of two, 512..524288
 * @param clusters how many there are; the first has number 2
 * @param tableOffset first byte of the table that is in force
 * @param dataOffset first byte of cluster 2
 * @param rootCluster first cluster of the root folder
 * @param sectorBytes 512, 1024, 2048 or 4096; not always what the device has
 * @param label as given in the boot sector, raw; empty if there is none
 * @param serial number of the volume
 */
record BootSector(
    int sectorBytes,
    int clusterBytes,
    int clusters,
    long tableOffset,
    long dataOffset,
    int rootCluster,
    byte[] label,
    int serial) {
  static final int BYTES = 512;
  static final int FIRST_CLUSTER = 2;
  static final int SIGNATURE = 0xAA55;
  static final int SIGNATURE_AT = 510;

  private static final int SECTOR_BYTES = 11; // BPB_BytsPerSec
  private static final int SECTORS_PER_CLUSTER = 13; // BPB_SecPerClus
  private static final int RESERVED = 14; // BPB_RsvdSecCnt
  private static final int TABLES = 16; // BPB_NumFATs
  static final int ROOT_ENTRIES = 17; // BPB_RootEntCnt
  private static final int SECTORS_16 = 19; // BPB_TotSec16
  private static final int MEDIA = 21; // BPB_Media
  static final int FAT_SIZE_16 = 22; // BPB_FATSz16
  private static final int SECTORS_32 = 32; // BPB_TotSec32
  static final int FAT_SIZE_32 = 36; // BPB_FATSz32
  private static final int EXTENDED_FLAGS = 40; // BPB_ExtFlags
  private static final int VERSION = 42; // BPB_FSVer
  private static final int ROOT_CLUSTER = 44; // BPB_RootClus
  private static final int BOOT_SIGNATURE = 66; // BS_BootSig
  private static final int SERIAL = 67; // BS_VolID
  private static final int LABEL = 71; // BS_VolLab

  private static final int HAS_LABEL = 0x29;
  private static final int NOT_MIRRORED = 0x80;
  private static final int ACTIVE_TABLE = 0x0F;
  private static final int ROOT_ENTRY_BYTES = 32;
  private static final int TABLE_ENTRY_BYTES = 4;
  private static final int LARGEST_SECTOR = 4096;
  private static final int MOST_SECTORS_PER_CLUSTER = 128;
  private static final int FIRST_MEDIA = 0xF8;
  private static final int REMOVABLE = 0xF0;

  /** What lies at or above this number is not a cluster but a mark. */
  static final int FIRST_MARK = 0x0FFFFFF7;

  /**
   * Reads and checks it.
   *
   * @throws FileSystemException if a field makes no sense or leaves the device; it names the field
   */
  static BootSector read(BlockReader reader) {
    String where = reader.name() + ", boot sector";
    if (reader.size() < BYTES) {
      throw corrupt(where, "the device has only " + reader.size() + " bytes");
    }
    byte[] bytes = new byte[BYTES];
    reader.read(0, MemorySegment.ofArray(bytes));
    ByteBuffer s = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    FatKind kind = FatKind.of(s);
    if (kind != FatKind.FAT32) {
      throw kind == FatKind.NONE
          ? corrupt(where, "this is not a FAT32 volume")
          : new FileSystemException(
              Kind.UNSUPPORTED,
              reader.name(),
              "this is %s, which gpunvme cannot read; mount it and copy the files to FAT32 or ext4"
                  .formatted(kind.label()));
    }
    return checked(s, reader.size(), where);
  }

  private static BootSector checked(ByteBuffer s, long deviceBytes, String where) {
    checkFields(s, where);
    int sector = u16(s, SECTOR_BYTES);
    int cluster = sector * u8(s, SECTORS_PER_CLUSTER);
    long tableBytes = u32(s, FAT_SIZE_32) * sector;
    long tables = (long) u16(s, RESERVED) * sector;
    long data = tables + u8(s, TABLES) * tableBytes;
    long total = sectors(s) * sector;
    if (total > deviceBytes) {
      throw corrupt(
          where,
          "the volume has %d bytes, but the device only %d: the end is missing"
              .formatted(total, deviceBytes));
    }
    if (data + cluster > total) {
      throw corrupt(
          where,
          "BPB_FATSz32: the tables end at byte %d, after the volume's end at %d"
              .formatted(data, total));
    }
    int flags = u16(s, EXTENDED_FLAGS);
    int active = (flags & NOT_MIRRORED) == 0 ? 0 : flags & ACTIVE_TABLE;
    if (active >= u8(s, TABLES)) {
      throw corrupt(
          where, "BPB_ExtFlags names table " + active + " of " + u8(s, TABLES) + " tables");
    }
    // A table may be shorter than the data area needs: what has no entry is not used.
    long clusters =
        Math.min(
            Math.min((total - data) / cluster, tableBytes / TABLE_ENTRY_BYTES - FIRST_CLUSTER),
            FIRST_MARK - FIRST_CLUSTER);
    long root = u32(s, ROOT_CLUSTER);
    if (root < FIRST_CLUSTER || root >= clusters + FIRST_CLUSTER) {
      throw corrupt(
          where,
          "BPB_RootClus %d is not a cluster: they are numbered 2..%d"
              .formatted(root, clusters + 1));
    }
    byte[] label = new byte[ShortName.BYTES];
    boolean labelled = u8(s, BOOT_SIGNATURE) == HAS_LABEL;
    s.get(LABEL, label);
    return new BootSector(
        sector,
        cluster,
        (int) clusters,
        tables + active * tableBytes,
        data,
        (int) root,
        labelled ? label : new byte[0],
        labelled ? s.getInt(SERIAL) : 0);
  }

  /** Fields that stand for themselves. */
  private static void checkFields(ByteBuffer s, String where) {
    int sector = u16(s, SECTOR_BYTES);
    int perCluster = u8(s, SECTORS_PER_CLUSTER);
    int media = u8(s, MEDIA);
    check(where, isSector(sector), "BPB_BytsPerSec", sector, "is not 512, 1024, 2048 or 4096");
    check(
        where,
        isPerCluster(perCluster),
        "BPB_SecPerClus",
        perCluster,
        "is not a power of two from 1 to 128");
    check(where, u16(s, RESERVED) != 0, "BPB_RsvdSecCnt", 0, "has no room for the boot sector");
    check(where, u8(s, TABLES) != 0, "BPB_NumFATs", 0, "leaves no table");
    check(where, isMedia(media), "BPB_Media", media, "is neither 240 nor 248..255");
    int entries = u16(s, ROOT_ENTRIES);
    check(where, entries == 0, "BPB_RootEntCnt", entries, "is not 0, as on FAT32");
    int short16 = u16(s, FAT_SIZE_16);
    check(where, short16 == 0, "BPB_FATSz16", short16, "is not 0, as on FAT32");
    check(where, u32(s, FAT_SIZE_32) != 0, "BPB_FATSz32", 0, "leaves no table");
    check(where, sectors(s) != 0, "BPB_TotSec32", 0, "leaves no volume");
    int version = u16(s, VERSION);
    if (version != 0) {
      throw new FileSystemException(
          Kind.UNSUPPORTED, where, "BPB_FSVer is %04Xh; only 0 is known".formatted(version));
    }
  }

  private static void check(String where, boolean right, String field, int value, String what) {
    if (!right) {
      throw corrupt(where, field + " " + value + " " + what);
    }
  }

  private static FileSystemException corrupt(String where, String what) {
    return new FileSystemException(Kind.CORRUPT, where, what);
  }

  private static boolean isSector(int bytes) {
    return Integer.bitCount(bytes) == 1 && bytes >= BYTES && bytes <= LARGEST_SECTOR;
  }

  private static boolean isPerCluster(int sectors) {
    return Integer.bitCount(sectors) == 1 && sectors <= MOST_SECTORS_PER_CLUSTER;
  }

  private static boolean isMedia(int media) {
    return media == REMOVABLE || media >= FIRST_MEDIA;
  }

  /** Whether a sector may be the first of any FAT volume. */
  static boolean plausible(ByteBuffer s) {
    return isSector(u16(s, SECTOR_BYTES))
        && isPerCluster(u8(s, SECTORS_PER_CLUSTER))
        && isMedia(u8(s, MEDIA))
        && u16(s, RESERVED) != 0
        && u8(s, TABLES) != 0
        && sectors(s) != 0;
  }

  /** Clusters of a FAT12 or FAT16 volume, whose number tells the two apart. */
  static long clusters(ByteBuffer s) {
    int sector = u16(s, SECTOR_BYTES);
    long root = Math.ceilDiv(u16(s, ROOT_ENTRIES) * ROOT_ENTRY_BYTES, sector);
    long before = u16(s, RESERVED) + (long) u8(s, TABLES) * u16(s, FAT_SIZE_16) + root;
    return (sectors(s) - before) / u8(s, SECTORS_PER_CLUSTER);
  }

  /** The field of 16 bits is 0 on FAT32 by the specification, and used by some formatters. */
  private static long sectors(ByteBuffer s) {
    int few = u16(s, SECTORS_16);
    return few != 0 ? few : u32(s, SECTORS_32);
  }

  private static int u8(ByteBuffer s, int at) {
    return Byte.toUnsignedInt(s.get(at));
  }

  private static int u16(ByteBuffer s, int at) {
    return Short.toUnsignedInt(s.getShort(at));
  }

  private static long u32(ByteBuffer s, int at) {
    return Integer.toUnsignedLong(s.getInt(at));
  }

  /** First byte of a cluster. */
  long offset(int cluster) {
    return dataOffset + (long) (cluster - FIRST_CLUSTER) * clusterBytes;
  }

  /** Whether there is a cluster of that number. */
  boolean has(int cluster) {
    return cluster >= FIRST_CLUSTER && cluster < clusters + FIRST_CLUSTER;
  }
}
