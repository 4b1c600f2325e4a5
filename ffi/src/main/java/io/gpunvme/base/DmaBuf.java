package io.gpunvme.base;

import io.gpunvme.ffi.Posix;

/**
 * Owner of a dma-buf's file descriptor, through which kernel drivers share memory of devices, and
 * the place of a piece of memory in the dma-buf. Safe for all threads.
 *
 * <p>Source: <a href="https://docs.kernel.org/driver-api/dma-buf.html">Linux, buffer sharing</a>.
 */
public final class DmaBuf implements AutoCloseable {
  private static final long PAGE = 4096;

  private final int fd;
  private final long offset;
  private final long size;
  private boolean closed;

  /**
   * Takes a descriptor.
   *
   * @param offset where the memory begins, bytes, a multiple of 4096
   * @param size of the memory in bytes, a multiple of 4096 above 0
   */
  public DmaBuf(int fd, long offset, long size) {
    if (fd < 0 || offset < 0 || size <= 0 || (offset | size) % PAGE != 0) {
      throw new IllegalArgumentException(
          "dma-buf %d, %d bytes at %d: not whole pages of %d bytes"
              .formatted(fd, size, offset, PAGE));
    }
    this.fd = fd;
    this.offset = offset;
    this.size = size;
  }

  /** The descriptor, owned by this object: kernel drivers that are given it keep the dma-buf. */
  public synchronized int fd() {
    if (closed) {
      throw new IllegalStateException("this dma-buf is closed");
    }
    return fd;
  }

  /** Where in the dma-buf the memory begins, bytes. */
  public long offset() {
    return offset;
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
