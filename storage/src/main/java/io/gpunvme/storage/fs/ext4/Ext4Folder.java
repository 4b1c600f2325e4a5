package io.gpunvme.storage.fs.ext4;

import io.gpunvme.storage.fs.FileExtent;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The names in a folder: in blocks one after the other, of which an index of hashes may be a part,
 * or in the inode.
 *
 * @see <a href="https://docs.kernel.org/filesystems/ext4/directory.html">Directory Entries</a>
 */
final class Ext4Folder {
  private static final int TAIL = 12;
  private static final int TAIL_TYPE = 0xDE;
  private static final int PARENT = 4; // bytes for .. in front of what is inline

  private final Ext4Volume volume;
  private final Inode inode;
  private final boolean indexed;
  private final List<FileExtent> extents;

  Ext4Folder(Ext4Volume volume, Inode inode) {
    this.volume = volume;
    this.inode = inode;
    Ext4Features features = volume.superBlock.features;
    if (inode.flag(Inode.CASE_FOLDED) && features.incompat(Ext4Features.CASEFOLD)) {
      throw volume.unsupported(
          inode.place(),
          "this folder ignores case (casefold), which gpunvme does not support; mount it to read"
              + " it");
    }
    if (DataMap.isInline(volume, inode)) {
      DataMap.checkReadable(volume, inode);
      indexed = false;
      extents = List.of();
    } else {
      indexed = inode.flag(Inode.INDEXED) && features.compat(Ext4Features.COMPAT_DIR_INDEX);
      extents = blocks();
    }
  }

  private List<FileExtent> blocks() {
    long blockSize = volume.superBlock.blockSize;
    long most = volume.superBlock.blocks * blockSize;
    if (inode.size == 0 || inode.size % blockSize != 0 || inode.size > most) {
      throw volume.corrupt(inode.place(), "this folder's size is %d bytes".formatted(inode.size));
    }
    List<FileExtent> all = DataMap.of(volume, inode);
    for (FileExtent extent : all) {
      if (extent.isZeros()) {
        throw volume.corrupt(
            inode.place(), "this folder has a hole at byte %d".formatted(extent.fileOffset()));
      }
    }
    return all;
  }

  /** Number of its blocks; 0 if it is inline. */
  long count() {
    return extents.isEmpty() ? 0 : inode.size / volume.superBlock.blockSize;
  }

  /** The hash index; null if it has none. */
  @Nullable HashIndex index() {
    return indexed ? new HashIndex(volume, inode, this) : null;
  }

  /** Tells of all names. */
  void forEach(Dirent.Visitor visitor) {
    if (extents.isEmpty()) {
      inline(visitor);
      return;
    }
    boolean more = true;
    for (long i = 0; more && i < count(); i++) {
      Bytes block = block(i);
      boolean index = indexed && HashIndex.isIndexBlock(block, i);
      more = entries(block, i, index, visitor);
    }
  }

  /** A name; null if it has none like that. */
  @Nullable Dirent find(byte[] name) {
    List<Dirent> found = new ArrayList<>(1);
    Dirent.Visitor same =
        entry -> {
          if (Arrays.equals(entry.name(), name)) {
            found.add(entry);
          }
          return found.isEmpty();
        };
    HashIndex index = index();
    List<Long> leaves = index == null ? null : index.leaves(name);
    if (leaves == null) {
      forEach(same);
    } else {
      boolean more = true;
      for (int i = 0; more && i < leaves.size(); i++) {
        long number = leaves.get(i);
        more = entries(block(number), number, false, same);
      }
    }
    return found.isEmpty() ? null : found.getFirst();
  }

  private boolean entries(Bytes block, long number, boolean index, Dirent.Visitor visitor) {
    String place = place(number);
    if (index) {
      HashIndex.checkChecksum(volume, inode, block, place);
      // It looks like a block with no names, or . and .. alone.
      return Dirent.scan(volume, block, place, visitor);
    }
    if (!volume.checksums) {
      return Dirent.scan(volume, block, place, visitor);
    }
    int end = block.length() - TAIL;
    boolean tail =
        block.u32(end) == 0
            && block.u16(end + 4) == TAIL
            && block.u8(end + 6) == 0
            && block.u8(end + 7) == TAIL_TYPE;
    int crc = Checksums.crc32c(inode.checksumSeed, block, 0, end);
    volume.checkChecksum(tail && crc == block.i32(end + 8), place);
    return Dirent.scan(volume, block.slice(0, end), place, visitor);
  }

  private void inline(Dirent.Visitor visitor) {
    InlineData data = InlineData.of(volume, inode);
    Bytes first = inode.raw.slice(Inode.MAP + PARENT, data.firstBytes() - PARENT);
    String place = inode.place() + ", names in it";
    if (Dirent.scan(volume, first, place, visitor) && data.restBytes() > 0) {
      Bytes rest = inode.raw.slice(data.rest(), data.restBytes());
      Dirent.scan(volume, rest, place + ", second part", visitor);
    }
  }

  /** A block of it by its number in it, not checked yet. */
  Bytes block(long number) {
    long blockSize = volume.superBlock.blockSize;
    long at = number * blockSize;
    int low = 0;
    int high = extents.size() - 1;
    while (low < high) {
      int middle = low + high + 1 >>> 1;
      if (extents.get(middle).fileOffset() <= at) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    FileExtent extent = extents.get(low);
    long device = extent.deviceOffset() + at - extent.fileOffset();
    return volume.block(device / blockSize, inode.place());
  }

  /** A block's name in messages. */
  String place(long number) {
    return inode.place() + ", block " + number + " of this folder";
  }
}
