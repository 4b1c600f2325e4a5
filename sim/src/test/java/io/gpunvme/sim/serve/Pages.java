package io.gpunvme.sim.serve;

import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import java.lang.foreign.MemorySegment;

/** Memory of a client that it can take away from the server: a memory file that is not sealed. */
final class Pages implements AutoCloseable {
  static final long PAGE = 4096;

  private final Mapping mapping;
  private int fd;

  private Pages(int fd, Mapping mapping) {
    this.fd = fd;
    this.mapping = mapping;
  }

  static Pages allocate(long bytes) {
    int fd = Posix.memfdCreate("client-pages", Posix.MFD_CLOEXEC);
    Posix.ftruncate(fd, bytes);
    return new Pages(fd, Mapping.shared(fd, 0, bytes, Posix.PROT_READ | Posix.PROT_WRITE));
  }

  int fd() {
    return fd;
  }

  MemorySegment memory() {
    return mapping.segment();
  }

  /** Everything from there on is gone; touching it here would be as bad as there. */
  void cut(long bytes) {
    Posix.ftruncate(fd, bytes);
  }

  @Override
  public void close() {
    mapping.close();
    if (fd >= 0) {
      Posix.close(fd);
      fd = -1;
    }
  }
}
