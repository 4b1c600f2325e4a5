package io.gpunvme.storage.fs.ext4;

import io.gpunvme.storage.fs.FileExtent;

/**
 * What a symbolic link names.
 *
 * @see <a href="https://docs.kernel.org/filesystems/ext4/ifork.html#symbolic-links">Symbolic
 *     Links</a>
 */
final class LinkTarget {
  private LinkTarget() {}

  static String read(Ext4Volume volume, Inode link) {
    DataMap.checkReadable(volume, link);
    boolean fast = link.isFastLink();
    int most = fast ? Inode.MAP_BYTES - 1 : volume.superBlock.blockSize;
    if (link.size == 0 || link.size > most) {
      throw volume.corrupt(
          link.place(), "this link's target has %d bytes, %d at most".formatted(link.size, most));
    }
    Bytes target = fast ? link.map() : bytes(volume, link);
    byte[] name = target.text(0, (int) link.size);
    if (name.length != link.size) {
      throw volume.corrupt(link.place(), "this link's target contains a zero");
    }
    return Names.text(name);
  }

  private static Bytes bytes(Ext4Volume volume, Inode link) {
    byte[] bytes = new byte[(int) link.size];
    long blockSize = volume.superBlock.blockSize;
    for (FileExtent extent : DataMap.of(volume, link)) {
      if (extent.isZeros()) {
        throw volume.corrupt(link.place(), "this link's target has a hole");
      }
      long device = extent.deviceOffset();
      Bytes block = volume.block(device / blockSize, link.place());
      int at = (int) (device % blockSize);
      // More than one part only where it is inline, and no part leaves its block.
      byte[] part = block.copy(at, (int) extent.length());
      System.arraycopy(part, 0, bytes, (int) extent.fileOffset(), part.length);
    }
    return new Bytes(bytes);
  }
}
