package io.gpunvme.storage.fs.ext4;

import io.gpunvme.storage.fs.BlockReader;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.FileSystemException.Kind;

/** What every structure is read from: the device, its superblock and its group descriptors. */
final class Ext4Volume {
  final BlockReader reader;
  final SuperBlock superBlock;
  final boolean checksums;
  private final BlockCache cache;
  private final GroupTable groups;

  Ext4Volume(BlockReader reader, Ext4Options options) {
    this.reader = reader;
    superBlock = SuperBlock.read(reader, options);
    checksums = superBlock.features.readOnly(Ext4Features.RO_METADATA_CSUM);
    cache = new BlockCache(reader, superBlock.blockSize);
    groups = new GroupTable(this);
  }

  /**
   * Reads a block of metadata.
   *
   * @param place who needs it, for the message
   * @throws FileSystemException if there is no such block
   */
  Bytes block(long number, String place) {
    checkBlocks(number, 1, place);
    return cache.read(number);
  }

  /** Throws unless these blocks are in the file system, behind the superblock. */
  void checkBlocks(long first, long count, String place) {
    SuperBlock sb = superBlock;
    if (first <= sb.firstDataBlock || first >= sb.blocks || count > sb.blocks - first) {
      throw corrupt(
          place,
          "it names %d blocks from block %s, but blocks %d to %d are for files"
              .formatted(
                  count, Long.toUnsignedString(first), sb.firstDataBlock + 1, sb.blocks - 1));
    }
  }

  /**
   * Reads an inode.
   *
   * @param place who names it, for the message
   */
  Inode inode(long number, String place) {
    SuperBlock sb = superBlock;
    boolean usable = number == Inode.ROOT || number >= sb.firstInode;
    if (!usable || number > sb.inodes) {
      throw corrupt(
          place,
          "it names inode %d, but inodes %d to %d are for files"
              .formatted(number, sb.firstInode, sb.inodes));
    }
    long index = (number - 1) % sb.inodesPerGroup;
    long byteInTable = index * sb.inodeSize;
    long blockNumber =
        groups.inodeTable((number - 1) / sb.inodesPerGroup) + byteInTable / sb.blockSize;
    Bytes block = block(blockNumber, "inode " + number);
    int start = (int) (byteInTable % sb.blockSize);
    return new Inode(
        this, number, block.slice(start, sb.inodeSize), blockNumber * sb.blockSize + start);
  }

  /** Damage, somewhere on this device. */
  FileSystemException corrupt(String place, String what) {
    return new FileSystemException(
        Kind.CORRUPT, reader.name() + ", " + place, what + "; e2fsck -f repairs what it can");
  }

  /** Something legal that is not read. */
  FileSystemException unsupported(String place, String what) {
    return new FileSystemException(Kind.UNSUPPORTED, reader.name() + ", " + place, what);
  }

  /** Damage that a checksum shows. */
  void checkChecksum(boolean equal, String place) {
    if (!equal) {
      throw corrupt(place, "its checksum is wrong");
    }
  }
}
