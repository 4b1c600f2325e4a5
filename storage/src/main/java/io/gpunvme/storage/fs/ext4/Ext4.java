package io.gpunvme.storage.fs.ext4;

import io.gpunvme.storage.fs.BlockReader;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystem;

/** ext4, ext3 or ext2 on a device, read-only. */
public final class Ext4 implements FileSystem {
  private final Ext4Volume volume;

  private Ext4(Ext4Volume volume) {
    this.volume = volume;
  }

  /**
   * Reads the superblock and the root.
   *
   * @param reader the device or partition, from its first byte; stays the caller's, and must stay
   *     open as long as what is returned is used
   * @throws io.gpunvme.storage.fs.FileSystemException if there is no such file system, it is
   *     damaged, it has features that are not read here, or its journal must be replayed first
   * @throws io.gpunvme.storage.path.StorageException if reading fails
   */
  public static FileSystem open(BlockReader reader, Ext4Options options) {
    Ext4Volume volume = new Ext4Volume(reader, options);
    Ext4 ext4 = new Ext4(volume);
    Inode root = volume.inode(Inode.ROOT, "root");
    if (root.kind() != FileNode.Kind.FOLDER) {
      throw volume.corrupt(root.place(), "the root is not a folder");
    }
    return ext4;
  }

  /** {@code ext4}, {@code ext3} or {@code ext2}, by the features that it has. */
  @Override
  public String type() {
    return volume.superBlock.features.type();
  }

  @Override
  public String label() {
    return volume.superBlock.label;
  }

  @Override
  public int blockSize() {
    return volume.superBlock.blockSize;
  }

  /**
   * {@inheritDoc}
   *
   * <p>Names are UTF-8; {@code \xHH} in a path is a byte of a name that is not, as {@link
   * FileNode#list} shows it. In indexed folders a name is found by its hash.
   */
  @Override
  public FileNode find(String path, boolean follow) {
    Inode inode = new PathWalk(volume, path).find(follow);
    return new Ext4Node(volume, inode);
  }
}
