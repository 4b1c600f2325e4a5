package io.gpunvme.sim.media;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;

/**
 * A file like that of {@link FileMedia}, mapped: what the page cache holds is read without a system
 * call. The first access of a page that it does not hold waits for the disk in the controller's
 * thread.
 */
public final class MappedMedia implements Media {
  private final FileMedia file;
  private final Mapping mapping;
  private final MemorySegment memory;

  private MappedMedia(FileMedia file, Mapping mapping) {
    this.file = file;
    this.mapping = mapping;
    memory = mapping.segment();
  }

  /** Opens or creates a backing file; as {@link FileMedia#open}. */
  public static MappedMedia open(Path file, long size, int granule, boolean readOnly) {
    FileMedia opened = FileMedia.open(file, size, granule, readOnly);
    try {
      int prot = readOnly ? Posix.PROT_READ : Posix.PROT_READ | Posix.PROT_WRITE;
      return new MappedMedia(opened, Mapping.shared(opened.fd(), 0, opened.size(), prot));
    } catch (PosixException e) {
      CloseAll.after(e, opened::close);
      throw new InvalidRequestException("file=" + file + ": " + e.getMessage());
    }
  }

  @Override
  public long size() {
    return file.size();
  }

  @Override
  public void read(long position, MemorySegment target, long offset, long length)
      throws IOException {
    copy(memory, position, target, offset, length);
  }

  @Override
  public void write(long position, MemorySegment source, long offset, long length)
      throws IOException {
    file.checkWritable();
    copy(source, offset, memory, position, length);
  }

  private static void copy(
      MemorySegment from, long fromOffset, MemorySegment to, long toOffset, long length)
      throws IOException {
    try {
      Mapping.copy(from, fromOffset, to, toOffset, length);
    } catch (InternalError e) {
      // The virtual machine's name for SIGBUS: the file was cut, or the disk failed.
      throw new IOException("the backing file's pages are not there: " + e.getMessage(), e);
    }
  }

  @Override
  public void zero(long position, long length) throws IOException {
    file.zero(position, length);
  }

  @Override
  public void trim(long position, long length) throws IOException {
    file.trim(position, length);
  }

  @Override
  public void flush() throws IOException {
    file.flush();
  }

  @Override
  public void close() throws IOException {
    // The controller's threads have ended: nobody reads any more.
    CloseAll.all(mapping, file);
  }
}
