package io.gpunvme.storage.fs.ext4;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The index of a folder: a tree of hashes whose root is the folder's first block, and whose blocks
 * look to those who do not know it like empty ones.
 *
 * @see <a href="https://docs.kernel.org/filesystems/ext4/directory.html#hash-tree-directories">Hash
 *     Tree Directories</a>
 */
final class HashIndex {
  private static final int ROOT_INFO = 24;
  private static final int ROOT_INFO_BYTES = 8;
  private static final int ROOT_ENTRIES = 32;
  private static final int NODE_ENTRIES = 8;
  private static final int ENTRY = 8;
  private static final int TAIL = 8;
  private static final int DOT = 12; // bytes of . in the root

  private final Ext4Volume volume;
  private final Inode inode;
  private final Ext4Folder folder;
  private long visited;

  HashIndex(Ext4Volume volume, Inode inode, Ext4Folder folder) {
    this.volume = volume;
    this.inode = inode;
    this.folder = folder;
  }

  /** Whether a block of an indexed folder belongs to the index. */
  static boolean isIndexBlock(Bytes block, long number) {
    return number == 0 || isNode(block);
  }

  private static boolean isNode(Bytes block) {
    return block.u32(0) == 0 && Dirent.length(block, 0) == block.length();
  }

  static void checkChecksum(Ext4Volume volume, Inode inode, Bytes block, String place) {
    if (!volume.checksums) {
      return;
    }
    int entries = isNode(block) ? NODE_ENTRIES : ROOT_ENTRIES;
    int limit = block.u16(entries);
    int count = block.u16(entries + 2);
    int tail = entries + limit * ENTRY;
    if (tail + TAIL > block.length() || count > limit) {
      throw volume.corrupt(
          place, "its index has %d entries, with room for %d".formatted(count, limit));
    }
    int crc = Checksums.crc32c(inode.checksumSeed, block, 0, entries + count * ENTRY);
    crc = Checksums.crc32c(crc, block.i32(tail));
    crc = Checksums.crc32cZeros(crc, 4);
    volume.checkChecksum(crc == block.i32(tail + 4), place);
  }

  /**
   * The blocks of the folder in which a name can be.
   *
   * @return null if the index is of no use: damaged, or of a kind that is not known
   * @throws io.gpunvme.storage.fs.FileSystemException if a checksum is wrong
   */
  @Nullable List<Long> leaves(byte[] name) {
    Bytes root = folder.block(0);
    checkChecksum(volume, inode, root, folder.place(0));
    int version = root.u8(ROOT_INFO + 4);
    int levels = root.u8(ROOT_INFO + 6);
    boolean large = volume.superBlock.features.incompat(Ext4Features.LARGEDIR);
    boolean usable =
        Dirent.length(root, 0) == DOT
            && Dirent.length(root, DOT) == root.length() - DOT
            && root.u32(ROOT_INFO) == 0
            && root.u8(ROOT_INFO + 5) == ROOT_INFO_BYTES
            && NameHash.isKnown(version)
            && levels < (large ? 3 : 2);
    if (!usable) {
      return null;
    }
    SuperBlock sb = volume.superBlock;
    int hash = NameHash.of(name, version, sb.unsignedHash, sb.hashSeed);
    List<Long> leaves = new ArrayList<>(1);
    return collect(root, ROOT_ENTRIES, levels, hash, leaves) ? leaves : null;
  }

  /**
   * Adds the leaves below a block of the index.
   *
   * @return false if the index is damaged
   */
  private boolean collect(Bytes block, int entries, int levels, int hash, List<Long> leaves) {
    int limit = block.u16(entries);
    int count = block.u16(entries + 2);
    if (count == 0 || count > limit || entries + limit * ENTRY > block.length()) {
      return false;
    }
    int at = last(block, entries, count, hash);
    do {
      // The number of a block has 28 bits.
      long child = block.u32(entries + at * ENTRY + 4) & 0xFFF_FFFF;
      // The root is not a child, and in a whole index no block is met twice.
      if (child == 0 || child >= folder.count() || ++visited > folder.count()) {
        return false;
      }
      if (levels == 0) {
        leaves.add(child);
      } else if (!descend(child, levels - 1, hash, leaves)) {
        return false;
      }
      at++;
      // Names of the same hash may go on in the next block, which then says so.
    } while (at < count && (hash(block, entries, at) & ~1) == hash);
    return true;
  }

  private boolean descend(long child, int levels, int hash, List<Long> leaves) {
    Bytes block = folder.block(child);
    if (!isNode(block)) {
      return false;
    }
    checkChecksum(volume, inode, block, folder.place(child));
    return collect(block, NODE_ENTRIES, levels, hash, leaves);
  }

  /** The last entry whose hash is not above; the first has none and stands for all below. */
  private static int last(Bytes block, int entries, int count, int hash) {
    int low = 0;
    int high = count - 1;
    while (low < high) {
      int middle = low + high + 1 >>> 1;
      if (Integer.compareUnsigned(hash(block, entries, middle), hash) <= 0) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  private static int hash(Bytes block, int entries, int index) {
    return block.i32(entries + index * ENTRY);
  }
}
