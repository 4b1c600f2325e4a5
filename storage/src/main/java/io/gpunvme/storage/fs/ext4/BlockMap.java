package io.gpunvme.storage.fs.ext4;

import java.util.HashSet;
import java.util.Set;

/**
 * The blocks of a file as ext2 and ext3 have them: twelve in the inode, then a block of numbers, a
 * block of such blocks, and one level more. A zero is a hole. Nothing here has a checksum.
 *
 * @see <a
 *     href="https://docs.kernel.org/filesystems/ext4/ifork.html#direct-indirect-block-addressing">
 *     Direct/Indirect Block Addressing</a>
 */
final class BlockMap {
  private static final int DIRECT = 12;
  private static final int LEVELS = 3;

  private final Ext4Volume volume;
  private final Inode inode;
  private final MapBuilder map;
  private final int perBlock;
  private final long blocks; // of the file
  private final Set<Long> seen = new HashSet<>();
  private long next; // block of the file

  private BlockMap(Ext4Volume volume, Inode inode, MapBuilder map) {
    this.volume = volume;
    this.inode = inode;
    this.map = map;
    int size = volume.superBlock.blockSize;
    perBlock = size / 4;
    blocks = (inode.size + size - 1) / size;
  }

  /** Adds all blocks of a file. */
  static void map(Ext4Volume volume, Inode inode, MapBuilder map) {
    BlockMap blockMap = new BlockMap(volume, inode, map);
    blockMap.checkSize();
    Bytes root = inode.map();
    for (int i = 0; i < DIRECT; i++) {
      blockMap.number(root.u32(4 * i), 0, inode.place());
    }
    for (int level = 1; level <= LEVELS; level++) {
      blockMap.number(root.u32(4 * (DIRECT + level - 1)), level, inode.place());
    }
  }

  private void checkSize() {
    long n = perBlock;
    long most = DIRECT + n + n * n + n * n * n;
    if (blocks > most) {
      throw volume.corrupt(
          inode.place(),
          "its size is %d bytes, but its map has %d blocks at most".formatted(inode.size, most));
    }
  }

  private void number(long number, int level, String place) {
    if (next >= blocks) {
      return;
    }
    long covered = 1;
    for (int i = 0; i < level; i++) {
      covered *= perBlock;
    }
    long size = volume.superBlock.blockSize;
    if (number == 0) {
      next += covered;
    } else if (level == 0) {
      volume.checkBlocks(number, 1, place);
      map.add(next * size, size, number * size);
      next++;
    } else {
      indirect(number, level, place);
    }
  }

  private void indirect(long number, int level, String parent) {
    if (!seen.add(number)) {
      throw volume.corrupt(parent, "block %d of its map is used twice".formatted(number));
    }
    Bytes block = volume.block(number, parent);
    String place = "%s, block %d of its map".formatted(inode.place(), number);
    for (int i = 0; i < perBlock && next < blocks; i++) {
      number(block.u32(4 * i), level - 1, place);
    }
  }
}
