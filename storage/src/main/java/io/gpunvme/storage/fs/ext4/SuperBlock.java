package io.gpunvme.storage.fs.ext4;

import io.gpunvme.storage.fs.BlockReader;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.FileSystemException.Kind;
import java.lang.foreign.MemorySegment;

/**
 * The superblock, checked: all its numbers fit each other and the device.
 *
 * @see <a href="https://docs.kernel.org/filesystems/ext4/globals.html#super-block">Super Block</a>
 */
final class SuperBlock {
  private static final int OFFSET = 1024;
  private static final int BYTES = 1024;
  private static final int MAGIC = 0xEF53;
  private static final int LARGEST_LOG = 6; // 64 KiB
  private static final int SMALLEST_INODE = 128;
  private static final int SMALLEST_DESCRIPTOR = 32;
  private static final int CHECKSUM = 0x3FC;
  private static final int CRC32C = 1;

  final Ext4Features features;
  final String label;
  final int blockSize;
  final long blocks;
  final long firstDataBlock;
  final long blocksPerGroup;
  final long clusterSize;
  final long groups;
  final long inodes;
  final long inodesPerGroup;
  final int inodeSize;
  final long firstInode;
  final int descriptorSize;
  final long firstMetaGroup;
  final Bytes uuid;
  final int checksumSeed;
  final int[] hashSeed = new int[4];
  final boolean unsignedHash;

  private final String device;
  private final Bytes sb;

  private SuperBlock(String device, long deviceBytes, Bytes sb, Ext4Options options) {
    this.device = device;
    this.sb = sb;
    if (sb.u16(0x38) != MAGIC) {
      throw none(
          device, "the magic at byte 1080 is 0x%04x instead of 0xef53".formatted(sb.u16(56)));
    }
    long revision = sb.u32(0x4C);
    boolean dynamic = revision >= 1; // what was fixed at revision 0 became fields
    if (revision > 1) {
      throw new FileSystemException(
          Kind.UNSUPPORTED, device, "revision %d of ext2 is unknown".formatted(revision));
    }
    features =
        dynamic
            ? new Ext4Features(sb.i32(0x5C), sb.i32(0x60), sb.i32(0x64))
            : new Ext4Features(0, 0, 0);
    uuid = sb.slice(0x68, 16);
    checksumSeed =
        features.incompat(Ext4Features.CSUM_SEED)
            ? sb.i32(0x270)
            : Checksums.crc32c(Checksums.START, uuid, 0, 16);
    checkChecksum();
    features.check(device, options);
    label = dynamic ? Names.text(sb.text(0x78, 16)) : "";
    blockSize = 1024 << atMost(sb.u32(0x18), LARGEST_LOG, "log of the block size");
    blocks = features.incompat(Ext4Features.BITS_64) ? sb.u64(0x4, 0x150) : sb.u32(0x4);
    firstDataBlock = sb.u32(0x14);
    checkSize(deviceBytes);
    clusterSize = clusterSize();
    blocksPerGroup = blocksPerGroup();
    groups = (blocks - firstDataBlock - 1) / blocksPerGroup + 1;
    inodeSize = dynamic ? sb.u16(0x58) : SMALLEST_INODE;
    firstInode = dynamic ? sb.u32(0x54) : 11;
    inodes = sb.u32(0);
    inodesPerGroup = sb.u32(0x28);
    checkInodes();
    descriptorSize = descriptorSize();
    firstMetaGroup = sb.u32(0x104);
    for (int i = 0; i < hashSeed.length; i++) {
      hashSeed[i] = sb.i32(0xEC + 4 * i);
    }
    unsignedHash = (sb.u32(0x160) & 2) != 0;
  }

  static SuperBlock read(BlockReader reader, Ext4Options options) {
    if (reader.size() < OFFSET + BYTES) {
      throw none(reader.name(), "it has %d bytes".formatted(reader.size()));
    }
    byte[] bytes = new byte[BYTES];
    reader.read(OFFSET, MemorySegment.ofArray(bytes));
    return new SuperBlock(reader.name(), reader.size(), new Bytes(bytes), options);
  }

  private void checkChecksum() {
    if (features.readOnly(Ext4Features.RO_METADATA_CSUM)) {
      check(sb.u8(0x175) == CRC32C, "type of checksums", sb.u8(0x175));
      int crc = Checksums.crc32c(Checksums.START, sb, 0, CHECKSUM);
      check(crc == sb.i32(CHECKSUM), "checksum", sb.u32(CHECKSUM));
    }
  }

  private void checkSize(long deviceBytes) {
    check(firstDataBlock <= 1 && firstDataBlock < blocks, "first data block", firstDataBlock);
    if (blocks > deviceBytes / blockSize) {
      throw corrupt(
          "it has %s blocks of %d bytes, but the device has only %d bytes: give the whole device or image"
              .formatted(Long.toUnsignedString(blocks), blockSize, deviceBytes));
    }
  }

  private long clusterSize() {
    if (!features.readOnly(Ext4Features.RO_BIGALLOC)) {
      return blockSize;
    }
    long log = sb.u32(0x1C);
    check(log >= sb.u32(0x18) && log <= 20, "log of the cluster size", log);
    return 1024L << log;
  }

  private long blocksPerGroup() {
    long clusters = features.readOnly(Ext4Features.RO_BIGALLOC) ? sb.u32(0x24) : sb.u32(0x20);
    check(clusters > 0 && clusters <= 8L * blockSize, "clusters of a group", clusters);
    long perGroup = clusters * (clusterSize / blockSize);
    check(sb.u32(0x20) == perGroup, "blocks of a group", sb.u32(0x20));
    return perGroup;
  }

  private void checkInodes() {
    boolean sizeFits = inodeSize >= SMALLEST_INODE && inodeSize <= blockSize;
    check(sizeFits && Integer.bitCount(inodeSize) == 1, "size of an inode", inodeSize);
    boolean fits = inodesPerGroup >= blockSize / inodeSize && inodesPerGroup <= 8L * blockSize;
    check(fits, "inodes of a group", inodesPerGroup);
    check(inodes == inodesPerGroup * groups, "number of inodes", inodes);
    check(firstInode > Inode.ROOT && firstInode <= inodes, "first inode", firstInode);
  }

  private int descriptorSize() {
    if (!features.incompat(Ext4Features.BITS_64)) {
      return SMALLEST_DESCRIPTOR;
    }
    int size = sb.u16(0xFE);
    boolean fits = size >= 2 * SMALLEST_DESCRIPTOR && size <= 1024;
    check(fits && Integer.bitCount(size) == 1, "size of a group descriptor", size);
    return size;
  }

  /** Whether a group begins with a copy of the superblock. */
  boolean hasSuperBlock(long group) {
    if (group == 0) {
      return true;
    }
    if (features.compat(Ext4Features.COMPAT_SPARSE_SUPER2)) {
      return group == sb.u32(0x24C) || group == sb.u32(0x250);
    }
    if (group == 1 || !features.readOnly(Ext4Features.RO_SPARSE_SUPER)) {
      return true;
    }
    return isPower(group, 3) || isPower(group, 5) || isPower(group, 7);
  }

  private static boolean isPower(long number, long base) {
    long rest = number;
    while (rest % base == 0) {
      rest /= base;
    }
    return rest == 1;
  }

  private int atMost(long value, int limit, String what) {
    check(value <= limit, what, value);
    return (int) value;
  }

  private void check(boolean good, String what, long value) {
    if (!good) {
      throw corrupt(
          "its %s is %s, which is impossible; a copy may be intact: e2fsck -b uses one"
              .formatted(what, Long.toUnsignedString(value)));
    }
  }

  private FileSystemException corrupt(String what) {
    return new FileSystemException(Kind.CORRUPT, device + ", superblock at byte 1024", what);
  }

  private static FileSystemException none(String device, String why) {
    return new FileSystemException(Kind.NOT_FOUND, device, "not an ext4 file system: " + why);
  }
}
