package io.gpunvme.cuda;

import io.gpunvme.ffi.Posix;

/**
 * Owner of a dma-buf's file descriptor. The GPU memory stays allocated until this and the memory
 * are both closed. Safe for all threads.
 */
public final class DmaBuf implements AutoCloseable {
  private final int fd;
  private final long size;
  private boolean closed;

  DmaBuf(int fd, long size) {
    this.fd = fd;
    this.size = size;
  }

  /** The descriptor, owned by this object: duplicate it to keep it. */
  public synchronized int fd() {
    if (closed) {
      throw new IllegalStateException("this dma-buf is closed");
    }
    return fd;
  }

  /** Gives the descriptor to the caller, who closes it; this is closed then. */
  public synchronized int take() {
    int taken = fd();
    closed = true;
    return taken;
  }

  /** Size of the memory in bytes. */
  public long size() {
    return size;
  }

  /** Closes the descriptor; a second call does nothing. */
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      Posix.close(fd);
    }
  }
}
