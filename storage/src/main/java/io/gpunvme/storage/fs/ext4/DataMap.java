package io.gpunvme.storage.fs.ext4;

import io.gpunvme.storage.fs.FileExtent;
import java.util.List;

/** Where the bytes of an inode are, whichever way it says so. */
final class DataMap {
  private DataMap() {}

  /** Extents from byte 0 to the size, without gaps. */
  static List<FileExtent> of(Ext4Volume volume, Inode inode) {
    checkReadable(volume, inode);
    MapBuilder map = new MapBuilder(inode.size);
    if (isInline(volume, inode)) {
      InlineData.of(volume, inode).map(inode, map);
    } else if (inode.flag(Inode.EXTENTS)) {
      ExtentTree.map(volume, inode, map);
    } else {
      BlockMap.map(volume, inode, map);
    }
    return map.finish();
  }

  static boolean isInline(Ext4Volume volume, Inode inode) {
    if (!inode.flag(Inode.INLINE)) {
      return false;
    }
    if (!volume.superBlock.features.incompat(Ext4Features.INLINE_DATA)) {
      throw volume.corrupt(
          inode.place(), "its data is inline, but the superblock does not have that feature");
    }
    return true;
  }

  /** Throws if the bytes mean something only to those who have a key or a tool. */
  static void checkReadable(Ext4Volume volume, Inode inode) {
    if (inode.flag(Inode.ENCRYPTED)) {
      throw volume.unsupported(
          inode.place(), "it is encrypted (fscrypt); copy it while it is mounted and unlocked");
    }
    if (inode.flag(Inode.VERITY)) {
      throw volume.unsupported(
          inode.place(),
          "it is protected by fs-verity, which gpunvme does not check; mount it to read it, or copy"
              + " it");
    }
    if (inode.flag(Inode.COMPRESSED_BLOCKS)) {
      throw volume.unsupported(
          inode.place(), "it is compressed (e2compr); copy it where it can be read");
    }
    if (inode.flag(Inode.EA_INODE)) {
      throw volume.corrupt(inode.place(), "it is the value of an attribute, but has a name");
    }
  }
}
