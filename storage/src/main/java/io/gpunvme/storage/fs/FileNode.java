package io.gpunvme.storage.fs;

import java.lang.foreign.MemorySegment;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** A file, folder or link of a {@link FileSystem}. Safe for all threads. */
public interface FileNode {
  /** The kinds of nodes. */
  enum Kind {
    /** Bytes. */
    FILE,
    /** Names of others. */
    FOLDER,
    /** Another name. */
    LINK,
    /** A device, socket or pipe, which cannot be read here. */
    OTHER
  }

  /**
   * A name in a folder. {@code .} and {@code ..} are left out.
   *
   * @param id of the file system's own: an inode, a first cluster
   */
  record Entry(String name, Kind kind, long id) {}

  /** The kind. */
  Kind kind();

  /** Of the file system's own: an inode, a first cluster. */
  long id();

  /** Bytes in it; of a link, of its target's name. */
  long size();

  /** When its bytes were last changed. */
  Instant modified();

  /**
   * Further facts of the file system, as text for users: {@code mode}, {@code links}, {@code flags}
   * and so on, in this order.
   */
  Map<String, String> details();

  /**
   * The places of its bytes, in order, from byte 0 to {@link #size} without gaps.
   *
   * @throws FileSystemException if it is not a file, or its map is corrupt
   */
  List<FileExtent> extents();

  /**
   * Lists every name in it, in the file system's order.
   *
   * @throws FileSystemException if it is not a folder, or corrupt
   */
  void list(Consumer<Entry> to);

  /**
   * What a name in it names; a link is not followed.
   *
   * @param entry from {@link #list}
   * @throws FileSystemException if it is not a folder, or corrupt
   */
  FileNode child(Entry entry);

  /**
   * The target of a link.
   *
   * @throws FileSystemException if it is not a link
   */
  String target();

  /**
   * Reads a file's bytes.
   *
   * @throws io.gpunvme.base.InvalidRequestException if the range is not inside the file
   */
  void read(long offset, MemorySegment target);
}
