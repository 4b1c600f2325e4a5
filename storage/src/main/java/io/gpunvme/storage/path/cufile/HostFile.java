package io.gpunvme.storage.path.cufile;

import io.gpunvme.ffi.Posix;
import io.gpunvme.storage.path.cufile.CuFilePieces.Piece;
import java.lang.foreign.MemorySegment;

/** The same file for buffers in host memory, which need no cuFile. */
final class HostFile implements AutoCloseable {
  private final int fd;
  private boolean closed;

  /**
   * Opens the file.
   *
   * @throws io.gpunvme.ffi.PosixException if that fails
   */
  HostFile(String file, boolean writable) {
    fd = Posix.open(file, (writable ? Posix.O_RDWR : Posix.O_RDONLY) | Posix.O_CLOEXEC, 0);
  }

  /** Moves a piece, perhaps not all of it; returns how many bytes. */
  long move(boolean writing, Piece piece) {
    MemorySegment memory = piece.buffer().segment().asSlice(piece.bufferOffset(), piece.length());
    return writing
        ? Posix.pwrite(fd, memory, piece.offset())
        : Posix.pread(fd, memory, piece.offset());
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      Posix.close(fd);
    }
  }
}
