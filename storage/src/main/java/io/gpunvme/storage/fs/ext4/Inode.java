package io.gpunvme.storage.fs.ext4;

import io.gpunvme.storage.fs.FileNode.Kind;
import java.time.Instant;

/**
 * An inode whose checksum is right: what it says of a file, but for where its bytes are.
 *
 * @see <a href="https://docs.kernel.org/filesystems/ext4/inodes.html">Index Nodes</a>
 */
final class Inode {
  /** The number of the root's. */
  static final long ROOT = 2;

  static final int COMPRESSED_BLOCKS = 0x200;
  static final int ENCRYPTED = 0x800;
  static final int INDEXED = 0x1000;
  static final int HUGE_FILE = 0x40000;
  static final int EXTENTS = 0x80000;
  static final int VERITY = 0x100000;
  static final int EA_INODE = 0x200000;
  static final int INLINE = 0x1000_0000;
  static final int CASE_FOLDED = 0x4000_0000;

  /** Where the block map, the root of the extents or the first bytes are, and how many bytes. */
  static final int MAP = 0x28;

  static final int MAP_BYTES = 60;

  private static final int SMALL = 128;
  private static final int CHECKSUM_LOW = 0x7C;
  private static final int CHECKSUM_HIGH = 0x82;

  final long number;
  final Bytes raw;
  final long deviceOffset;
  final long size;

  /** What the checksums of what belongs to it begin with. */
  final int checksumSeed;

  private final Ext4Volume volume;
  private final int extraBytes;

  Inode(Ext4Volume volume, long number, Bytes raw, long deviceOffset) {
    this.volume = volume;
    this.number = number;
    this.raw = raw;
    this.deviceOffset = deviceOffset;
    extraBytes = raw.length() > SMALL ? raw.u16(0x80) : 0;
    int seed = Checksums.crc32c(volume.superBlock.checksumSeed, (int) number);
    checksumSeed = Checksums.crc32c(seed, raw.i32(0x64));
    if (volume.checksums) {
      checkChecksum();
    }
    if (mode() == 0 || links() == 0) {
      throw volume.corrupt(place(), "it is free, but something names it");
    }
    if (extraBytes % 4 != 0 || SMALL + extraBytes > raw.length()) {
      throw volume.corrupt(place(), "its extra size is %d bytes".formatted(extraBytes));
    }
    size = size();
  }

  private void checkChecksum() {
    boolean high = raw.length() > SMALL && has(CHECKSUM_HIGH, 2);
    int crc = Checksums.crc32c(checksumSeed, raw, 0, CHECKSUM_LOW);
    crc = Checksums.crc32cZeros(crc, 2);
    int rest = CHECKSUM_LOW + 2;
    if (high) {
      crc = Checksums.crc32c(crc, raw, rest, CHECKSUM_HIGH - rest);
      crc = Checksums.crc32cZeros(crc, 2);
      rest = CHECKSUM_HIGH + 2;
    }
    crc = Checksums.crc32c(crc, raw, rest, raw.length() - rest);
    boolean equal = (crc & 0xFFFF) == raw.u16(CHECKSUM_LOW);
    volume.checkChecksum(equal && (!high || crc >>> 16 == raw.u16(CHECKSUM_HIGH)), place());
  }

  private long size() {
    Ext4Features features = volume.superBlock.features;
    boolean wide = kind() == Kind.FILE || features.incompat(Ext4Features.LARGEDIR);
    long bytes = wide ? raw.u64(0x4, 0x6C) : raw.u32(0x4);
    // A block's number in a file has 32 bits.
    if (bytes < 0 || bytes > (long) volume.superBlock.blockSize << 32) {
      throw volume.corrupt(place(), "its size is %s bytes".formatted(Long.toUnsignedString(bytes)));
    }
    return bytes;
  }

  /** Its name in messages. */
  String place() {
    return "inode " + number;
  }

  Kind kind() {
    return switch (mode() >> 12) {
      case 0x8 -> Kind.FILE;
      case 0x4 -> Kind.FOLDER;
      case 0xA -> Kind.LINK;
      default -> Kind.OTHER;
    };
  }

  /** Type and permissions, as {@code stat} has them. */
  int mode() {
    return raw.u16(0x0);
  }

  int flags() {
    return raw.i32(0x20);
  }

  boolean flag(int bit) {
    return (flags() & bit) != 0;
  }

  int links() {
    return raw.u16(0x1A);
  }

  long generation() {
    return raw.u32(0x64);
  }

  int owner() {
    return raw.u16(0x2) | raw.u16(0x78) << 16;
  }

  int group() {
    return raw.u16(0x18) | raw.u16(0x7A) << 16;
  }

  /** Bytes that are allocated for it, with its metadata. */
  long allocated() {
    long count = raw.u32(0x1C);
    if (volume.superBlock.features.readOnly(Ext4Features.RO_HUGE_FILE)) {
      count |= (long) raw.u16(0x74) << 32;
    }
    return count * (flag(HUGE_FILE) ? volume.superBlock.blockSize : 512);
  }

  Instant modified() {
    long seconds = raw.i32(0x10); // signed: from 1901
    int extra = has(0x88, 4) ? raw.i32(0x88) : 0; // and two bits more, then nanoseconds
    return Instant.ofEpochSecond(seconds + ((extra & 3L) << 32), extra >>> 2);
  }

  /** Whether a link's target is in the inode where others have their block map. */
  boolean isFastLink() {
    long attributes = raw.u64(0x68, 0x76) << 16 >>> 16;
    long attributeBytes = attributes == 0 ? 0 : volume.superBlock.clusterSize;
    return kind() == Kind.LINK && !flag(INLINE) && allocated() == attributeBytes;
  }

  Bytes map() {
    return raw.slice(MAP, MAP_BYTES);
  }

  /** First byte behind the fields, where extended attributes may begin. */
  int end() {
    return SMALL + extraBytes;
  }

  /** Whether the inode is long enough for a field behind the first 128 bytes. */
  private boolean has(int offset, int bytes) {
    return SMALL + extraBytes >= offset + bytes && raw.length() >= offset + bytes;
  }
}
