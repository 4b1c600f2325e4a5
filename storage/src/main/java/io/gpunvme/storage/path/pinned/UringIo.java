package io.gpunvme.storage.path.pinned;

import io.gpunvme.ffi.IoUring;
import java.lang.foreign.MemorySegment;

/** Many at a time by io_uring, handed to the kernel when they are waited for. */
final class UringIo implements LaneIo {
  private final IoUring ring;
  private final int depth;

  UringIo(int depth) {
    ring = IoUring.open(depth);
    this.depth = Math.min(depth, ring.entries());
  }

  @Override
  public String name() {
    return "io_uring";
  }

  @Override
  public int depth() {
    return depth;
  }

  @Override
  public void start(boolean write, int fd, MemorySegment memory, long offset, long token) {
    boolean put =
        write ? ring.write(fd, memory, offset, token) : ring.read(fd, memory, offset, token);
    if (!put) {
      throw new IllegalStateException("more than " + depth + " in flight");
    }
  }

  @Override
  public void await(IoUring.Completions to) {
    do {
      ring.await();
    } while (ring.take(to) == 0);
  }

  @Override
  public void settle() {
    ring.settle();
  }

  @Override
  public void close() {
    ring.close();
  }
}
