package io.gpunvme.storage.fs.ext4;

import io.gpunvme.storage.fs.FileExtent;

/**
 * The extents of a file: a tree whose root is in the inode. Each node is checked before it is used:
 * magic, depth, order, that it stays inside what its parent says of it, and its checksum.
 *
 * @see <a href="https://docs.kernel.org/filesystems/ext4/ifork.html#extent-tree">Extent Tree</a>
 */
final class ExtentTree {
  private static final int MAGIC = 0xF30A;
  private static final int HEADER = 12;
  private static final int ENTRY = 12;
  private static final int CHECKSUM = 4;
  private static final int DEEPEST = 5;
  private static final long BLOCKS = 1L << 32; // of a file
  private static final int LONGEST_WRITTEN = 1 << 15;

  private final Ext4Volume volume;
  private final Inode inode;
  private final MapBuilder map;
  private long next; // first block of the file behind what was found
  private long nodes;

  private ExtentTree(Ext4Volume volume, Inode inode, MapBuilder map) {
    this.volume = volume;
    this.inode = inode;
    this.map = map;
  }

  /** Adds all extents of a file. */
  static void map(Ext4Volume volume, Inode inode, MapBuilder map) {
    Bytes root = inode.map();
    String place = inode.place() + ", root of its extents";
    int depth = root.u16(6);
    ExtentTree tree = new ExtentTree(volume, inode, map);
    if (depth > DEEPEST) {
      throw volume.corrupt(place, "its depth is %d, the greatest is 5".formatted(depth));
    }
    tree.checkHeader(root, depth, place, 0);
    tree.node(root, depth, 0, BLOCKS, place);
  }

  private void node(Bytes node, int depth, long first, long end, String place) {
    int entries = node.u16(2);
    long before = -1;
    for (int i = 0; i < entries; i++) {
      int at = HEADER + ENTRY * i;
      long block = node.u32(at);
      if (block < first || block >= end || block <= before) {
        throw volume.corrupt(
            place,
            "entry %d begins at block %d of the file, after one at %d, and the node is for blocks"
                    .formatted(i, block, before)
                + " %d to %d".formatted(first, end - 1));
      }
      before = block;
      if (depth == 0) {
        leaf(node, at, block, end, place);
      } else {
        long nextBlock = i + 1 < entries ? Math.min(node.u32(at + ENTRY), end) : end;
        child(node, at, depth, block, nextBlock, place);
      }
    }
  }

  private void leaf(Bytes node, int at, long block, long end, String place) {
    int length = node.u16(at + 4);
    boolean written = length <= LONGEST_WRITTEN;
    int count = written ? length : length - LONGEST_WRITTEN;
    if (count == 0 || block + count > end || block < next) {
      throw volume.corrupt(
          place,
          "an extent has %d blocks from block %d of the file, after others to %d, and the node is"
                  .formatted(count, block, next - 1)
              + " for blocks before %d".formatted(end));
    }
    next = block + count;
    long start = node.u32(at + 8) | (long) node.u16(at + 6) << 32;
    volume.checkBlocks(start, count, place);
    long size = volume.superBlock.blockSize;
    map.add(block * size, count * size, written ? start * size : FileExtent.ZEROS);
  }

  private void child(Bytes node, int at, int depth, long first, long end, String parent) {
    long number = node.u32(at + 4) | (long) node.u16(at + 8) << 32;
    String place =
        "%s, node of its extents in block %s"
            .formatted(inode.place(), Long.toUnsignedString(number));
    if (++nodes > volume.superBlock.blocks) {
      throw volume.corrupt(parent, "its tree has more nodes than the file system has blocks");
    }
    Bytes child = volume.block(number, parent);
    checkHeader(child, depth - 1, place, CHECKSUM);
    node(child, depth - 1, first, end, place);
  }

  private void checkHeader(Bytes node, int depth, String place, int tail) {
    int magic = node.u16(0);
    int entries = node.u16(2);
    int most = node.u16(4);
    if (magic != MAGIC) {
      throw volume.corrupt(place, "its magic is 0x%04x instead of 0xf30a".formatted(magic));
    }
    if (node.u16(6) != depth) {
      throw volume.corrupt(place, "its depth is %d instead of %d".formatted(node.u16(6), depth));
    }
    int end = HEADER + ENTRY * most;
    boolean none = entries == 0 && depth > 0;
    if (end + tail > node.length() || most == 0 || entries > most || none) {
      throw volume.corrupt(
          place, "it has %d entries of %d in %d bytes".formatted(entries, most, node.length()));
    }
    if (volume.checksums && tail > 0) {
      int crc = Checksums.crc32c(inode.checksumSeed, node, 0, end);
      volume.checkChecksum(crc == node.i32(end), place);
    }
  }
}
