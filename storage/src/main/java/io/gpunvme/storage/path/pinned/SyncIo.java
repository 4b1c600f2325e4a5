package io.gpunvme.storage.path.pinned;

import io.gpunvme.ffi.IoUring;
import io.gpunvme.ffi.Posix;
import java.lang.foreign.MemorySegment;

/** One system call at a time, done when it is started. */
final class SyncIo implements LaneIo {
  private long token;
  private int result;

  @Override
  public String name() {
    return "threads";
  }

  @Override
  public int depth() {
    return 1;
  }

  @Override
  public void start(boolean write, int fd, MemorySegment memory, long offset, long token) {
    this.token = token;
    result =
        (int) (write ? Posix.tryPwrite(fd, memory, offset) : Posix.tryPread(fd, memory, offset));
  }

  @Override
  public void await(IoUring.Completions to) {
    to.completed(token, result);
  }

  @Override
  public void settle() {}

  @Override
  public void close() {}
}
