package io.gpunvme.storage.fs.ext4;

/**
 * The group descriptors, of which only the place of the inodes is needed. They lie behind the
 * superblock, or with meta_bg in the first group of as many as one block describes.
 *
 * @see <a
 *     href="https://docs.kernel.org/filesystems/ext4/globals.html#block-group-descriptors">Block
 *     Group Descriptors</a>
 */
final class GroupTable {
  private static final int CHECKSUM = 0x1E;
  private static final int SMALL = 32;

  private final Ext4Volume volume;
  private final SuperBlock sb;
  private final int perBlock;
  private final long tableBlocks;

  GroupTable(Ext4Volume volume) {
    this.volume = volume;
    sb = volume.superBlock;
    perBlock = sb.blockSize / sb.descriptorSize;
    tableBlocks = (sb.inodesPerGroup * sb.inodeSize + sb.blockSize - 1) / sb.blockSize;
  }

  /** First block of a group's inodes; all of them are in the file system. */
  long inodeTable(long group) {
    long number = descriptorBlock(group / perBlock);
    String place = "descriptor of group " + group + " in block " + number;
    Bytes block = volume.block(number, place);
    int at = (int) (group % perBlock) * sb.descriptorSize;
    Bytes descriptor = block.slice(at, sb.descriptorSize);
    checkChecksum(descriptor, (int) group, place);
    long table = sb.descriptorSize > SMALL ? descriptor.u64(0x8, 0x28) : descriptor.u32(0x8);
    volume.checkBlocks(table, tableBlocks, place);
    return table;
  }

  private long descriptorBlock(long index) {
    boolean meta = sb.features.incompat(Ext4Features.META_BG) && index >= sb.firstMetaGroup;
    if (!meta) {
      return 1024 / sb.blockSize + 1 + index; // the superblock is at byte 1024
    }
    long group = index * perBlock;
    long behind = sb.hasSuperBlock(group) ? 1 : 0;
    if (sb.blockSize == 1024 && index == 0 && sb.firstDataBlock == 0) {
      behind++;
    }
    return sb.firstDataBlock + group * sb.blocksPerGroup + behind;
  }

  private void checkChecksum(Bytes descriptor, int group, String place) {
    int crc;
    int rest = CHECKSUM + 2;
    if (volume.checksums) {
      crc = Checksums.crc32c(sb.checksumSeed, group);
      crc = Checksums.crc32c(crc, descriptor, 0, CHECKSUM);
      crc = Checksums.crc32cZeros(crc, 2);
      crc = Checksums.crc32c(crc, descriptor, rest, descriptor.length() - rest);
    } else if (sb.features.readOnly(Ext4Features.RO_GDT_CSUM)) {
      crc = Checksums.crc16(Checksums.START, sb.uuid, 0, 16);
      crc = Checksums.crc16(crc, group);
      crc = Checksums.crc16(crc, descriptor, 0, CHECKSUM);
      crc = Checksums.crc16(crc, descriptor, rest, descriptor.length() - rest);
    } else {
      return;
    }
    volume.checkChecksum((crc & 0xFFFF) == descriptor.u16(CHECKSUM), place);
  }
}
