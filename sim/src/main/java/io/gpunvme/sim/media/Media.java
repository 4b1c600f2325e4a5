package io.gpunvme.sim.media;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * What keeps the bytes of one namespace: a flat array of {@link #size} bytes and nothing else.
 *
 * <p>Positions are bytes from the start of the namespace. The caller has checked that the range
 * lies inside; an implementation may throw {@link IndexOutOfBoundsException} if it does not. Safe
 * for all threads. Writing throws {@link NoSpaceException} if there is no room. Two accesses to the
 * same bytes at the same time leave any mixture of the two. Nothing here allocates on success.
 */
public interface Media extends AutoCloseable {
  /** Size in bytes; never changes. */
  long size();

  /** Copies {@code length} bytes from {@code position} into {@code target} at {@code offset}. */
  void read(long position, MemorySegment target, long offset, long length) throws IOException;

  /** Copies {@code length} bytes from {@code source} at {@code offset} to {@code position}. */
  void write(long position, MemorySegment source, long offset, long length) throws IOException;

  /**
   * Gets ready for a write of this range, all of which is known here and may then come in parts. To
   * be called before writing through {@link #view}; {@link #write} does without.
   */
  default void prepare(long position, long length) throws IOException {}

  /**
   * The bytes themselves, if they are memory: reading and writing them is reading and writing the
   * medium. Lives until {@link #close}.
   *
   * @return null if the bytes are not in memory
   */
  default @Nullable MemorySegment view(long position, long length) {
    return null;
  }

  /** Whether anything is kept: if not, nothing needs to be moved to or from here at all. */
  default boolean keepsData() {
    return true;
  }

  /** Makes a range read as zeros; the storage behind it stays allocated where that is possible. */
  void zero(long position, long length) throws IOException;

  /** Gives back the storage behind a range, which reads as zeros from now on. */
  void trim(long position, long length) throws IOException;

  /** Returns when everything written before is durable. */
  void flush() throws IOException;

  /** Flushes and gives the resources back. Idempotent; no other call may follow. */
  @Override
  void close() throws IOException;
}
