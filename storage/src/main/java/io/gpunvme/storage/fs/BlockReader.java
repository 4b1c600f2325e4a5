package io.gpunvme.storage.fs;

import io.gpunvme.storage.path.RangeChecks;
import java.lang.foreign.MemorySegment;

/** Bytes that can be read at any place: a namespace, an image, a part of either, a file. */
public interface BlockReader extends AutoCloseable {
  /** Its name in messages. */
  String name();

  /** Bytes in it. */
  long size();

  /**
   * Fills memory of the host. Safe for all threads.
   *
   * @param offset first byte, of any alignment
   * @param target of any length and alignment
   * @throws io.gpunvme.base.InvalidRequestException if the range is not inside it
   * @throws io.gpunvme.storage.path.StorageException if reading fails
   */
  void read(long offset, MemorySegment target);

  /**
   * Checks bytes of it.
   *
   * @throws io.gpunvme.base.InvalidRequestException if they are not all inside
   */
  default void requireInside(long offset, long length) {
    RangeChecks.inside(name(), size(), offset, length);
  }

  /** Frees what this owns. */
  @Override
  default void close() {}
}
