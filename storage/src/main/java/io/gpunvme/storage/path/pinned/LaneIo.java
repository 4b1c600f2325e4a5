package io.gpunvme.storage.path.pinned;

import io.gpunvme.ffi.IoUring;
import java.lang.foreign.MemorySegment;

/** Reads and writes of one thread, several at a time. */
interface LaneIo extends AutoCloseable {
  /** Its name in {@code mode()}. */
  String name();

  /** Most that can be started before the first has ended. */
  int depth();

  /**
   * Starts a read or write; it may end early, as the system calls do.
   *
   * @param memory stays allocated until it has ended
   * @param token comes back with the result
   */
  void start(boolean write, int fd, MemorySegment memory, long offset, long token);

  /**
   * Waits until at least one that was started is over, and hands out all that are.
   *
   * @param to gets bytes moved, or an error number negated
   */
  void await(IoUring.Completions to);

  /** Returns when nothing is in flight any more, whatever fails; what became of it is forgotten. */
  void settle();

  /** Nothing is in flight. */
  @Override
  void close();
}
