package io.gpunvme.storage.fs;

/** A file system on some {@link BlockReader}, read-only. Safe for all threads. */
public interface FileSystem {
  /** The type, as {@code mount -t} names it: {@code ext4}, {@code vfat}. */
  String type();

  /** The volume's label; may be empty. */
  String label();

  /** Bytes that it allocates at a time. */
  int blockSize();

  /**
   * Finds a file or folder.
   *
   * @param path names between slashes; one at the start changes nothing, {@code .} and {@code ..}
   *     are understood
   * @param follow whether to follow the last name if it is a symbolic link; earlier ones are always
   *     followed
   * @throws FileSystemException if there is none, or a folder on the way cannot be read
   */
  FileNode find(String path, boolean follow);
}
