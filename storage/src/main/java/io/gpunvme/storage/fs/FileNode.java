package io.gpunvme.storage.fs;

import java.lang.foreign.MemorySegment;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** A file, folder or link of a {@link FileSystem}. Safe for all threads. */
public interface FileNode {
  /** What there is. */
  enum Kind {
    /** Bytes. */
    FILE,
    /** Names of others. */
    FOLDER,
    /** Another name. */
    LINK,
    /** A device, socket or pipe: nothing that could be read here. */
    OTHER
  }

  /**
   * A name in a folder. {@code .} and {@code ..} are left out.
   *
   * @param id of the file system's own: an inode, a first cluster
   */
  record Entry(String name, Kind kind, long id) {}

  /** What it is. */
  Kind kind();

  /** Of the file system's own: an inode, a first cluster. */
  long id();

  /** Bytes in it; of a link, of its target's name. */
  long size();

  /** When its bytes were last changed. */
  Instant modified();

  /**
   * What else the file system knows, to be shown: {@code mode}, {@code links}, {@code flags} and so
   * on, in this order.
   */
  Map<String, String> details();

  /**
   * Where its bytes are, in order, from byte 0 to {@link #size} without gaps.
   *
   * @throws FileSystemException if it is not a file, or its map is corrupt
   */
  List<FileExtent> extents();

  /**
   * Tells of every name in it, in the file system's order.
   *
   * @throws FileSystemException if it is not a folder, or corrupt
   */
  void list(Consumer<Entry> to);

  /**
   * What a link names.
   *
   * @throws FileSystemException if it is none
   */
  String target();

  /**
   * Reads a file's bytes.
   *
   * @throws io.gpunvme.base.InvalidRequestException if the range leaves the file
   */
  void read(long offset, MemorySegment target);
}
