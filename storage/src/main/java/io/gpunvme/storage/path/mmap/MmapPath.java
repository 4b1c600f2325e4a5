package io.gpunvme.storage.path.mmap;

import io.gpunvme.base.CloseAll;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.RequestShape;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.Verdict;
import io.gpunvme.storage.path.file.FileErrors;
import io.gpunvme.storage.path.file.SourceFile;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Copies between a mapped file and buffers, one thread per transfer; to and from an accelerator's
 * memory by way of two pieces of pinned memory, so that the copy out of the page cache and the copy
 * to the accelerator overlap.
 */
public final class MmapPath implements DataPath {
  /** What one thread was seen to reach on an H200 from a warm page cache, 10^9 bytes a second. */
  private static final double WARM = 6;

  private static final double COLD = 1;

  /** Shorter ranges than this are bound by their number: each waits for the disk by itself. */
  private static final double SHORT = 64 << 10;

  private static final double COLD_RANGES_PER_SECOND = 10_000;
  private static final double WARM_RANGES_PER_SECOND = 370_000;

  private final SourceFile file;
  private final boolean ownsFile;
  private final @Nullable Mapping owner;

  /** Empty of an empty file, of which nothing can be mapped. */
  private final MemorySegment mapping;

  private final WindowPool windows;
  private boolean closed;

  private MmapPath(SourceFile file, boolean ownsFile, Accelerator accelerator) {
    this.file = file;
    this.ownsFile = ownsFile;
    owner = map(file);
    mapping = owner == null ? MemorySegment.NULL : owner.segment();
    windows = new WindowPool(accelerator);
  }

  private static @Nullable Mapping map(SourceFile file) {
    long size = file.size();
    int access = file.writable() ? Posix.PROT_READ | Posix.PROT_WRITE : Posix.PROT_READ;
    try {
      return size == 0 ? null : Mapping.shared(file.fd(), 0, size, access);
    } catch (PosixException e) {
      throw FileErrors.of(file.name(), e);
    }
  }

  /** Opens and maps a file, which is closed with the path; see {@link SourceFile#open}. */
  public static MmapPath open(Path file, boolean writable, Accelerator accelerator) {
    SourceFile source = SourceFile.open(file.toString(), writable);
    return CloseAll.orClose(() -> new MmapPath(source, true, accelerator), source::close);
  }

  /**
   * Maps a file of the caller's, as long as it is now. The caller closes it after the path.
   *
   * @throws StorageException if it cannot be mapped
   */
  public static MmapPath open(SourceFile file, Accelerator accelerator) {
    return new MmapPath(file, false, accelerator);
  }

  /** Every regular file that can be read can be mapped. */
  public static Verdict judge(Path file) {
    return Files.isRegularFile(file)
        ? Verdict.yes(PathKind.MMAP, "a regular file")
        : Verdict.no(PathKind.MMAP, file + " is not a regular file", "");
  }

  @Override
  public PathKind kind() {
    return PathKind.MMAP;
  }

  @Override
  public String mode() {
    return "mapped file, 1 thread per transfer";
  }

  @Override
  public long size() {
    return mapping.byteSize();
  }

  @Override
  public int alignment() {
    return 1;
  }

  @Override
  public double expected(RequestShape shape) {
    double cold = COLD;
    double warm = WARM;
    if (shape.meanLength() < SHORT) {
      double gigabytes = Math.max(1, shape.meanLength()) / 1e9;
      cold = Math.min(cold, COLD_RANGES_PER_SECOND * gigabytes);
      warm = Math.min(warm, WARM_RANGES_PER_SECOND * gigabytes);
    }
    return 1 / (shape.resident() / warm + (1 - shape.resident()) / cold);
  }

  @Override
  public void transfer(Direction direction, List<Range> ranges, PathCall call) {
    requireAllowed(direction, call);
    if (isHostMemory(ranges)) {
      // Nothing of the accelerator's: making windows could wait for whom this is read for.
      for (Range r : ranges) {
        move(direction, r.offset(), r.buffer(), r.bufferOffset(), r.length(), call, null);
      }
      return;
    }
    MappedWindows pair = windows.take();
    try {
      for (Range r : ranges) {
        move(direction, r.offset(), r.buffer(), r.bufferOffset(), r.length(), call, pair);
      }
      pair.finish();
    } finally {
      windows.giveBack(pair);
    }
  }

  /** Without a list where that is all that is to be done. */
  @Override
  public void transfer(
      Direction direction,
      long offset,
      DeviceBuffer buffer,
      long bufferOffset,
      long length,
      PathCall call) {
    if (buffer.isHost()) {
      requireAllowed(direction, call);
      move(direction, offset, buffer, bufferOffset, length, call, null);
    } else {
      DataPath.super.transfer(direction, offset, buffer, bufferOffset, length, call);
    }
  }

  private void requireAllowed(Direction direction, PathCall call) {
    if (direction == Direction.WRITE && !file.writable()) {
      throw new StorageException(
          Kind.PERMISSION, call.source(), -1, -1, "it is open for reading only", null);
    }
  }

  private static boolean isHostMemory(List<Range> ranges) {
    for (Range r : ranges) {
      if (!r.buffer().isHost()) {
        return false;
      }
    }
    return true;
  }

  private void move(
      Direction direction,
      long offset,
      DeviceBuffer buffer,
      long bufferOffset,
      long length,
      PathCall call,
      @Nullable MappedWindows pair) {
    for (long done = 0; done < length; ) {
      long at = offset + done;
      call.throwIfCancelled(at, length - done);
      long n = Math.min(MappedWindows.BYTES, length - done);
      requireThere(at, n, call);
      long start = System.nanoTime();
      try {
        copy(direction == Direction.READ, at, buffer, bufferOffset + done, n, pair);
      } catch (InternalError e) {
        // The virtual machine's name for SIGBUS: the file has lost these pages, or the disk has.
        throw new StorageException(
            Kind.IO, call.source(), at, n, "the kernel could not read the mapped pages", e);
      }
      call.operation(System.nanoTime() - start);
      call.counters().moved(direction, n);
      if (!buffer.isHost()) {
        call.counters().staged(n);
      }
      done += n;
    }
  }

  private void copy(
      boolean read, long at, DeviceBuffer buffer, long to, long n, @Nullable MappedWindows pair) {
    if (pair == null || buffer.isHost()) {
      if (read) {
        Mapping.copy(mapping, at, buffer.segment(), to, n);
      } else {
        Mapping.copy(buffer.segment(), to, mapping, at, n);
      }
    } else if (read) {
      pair.upload(mapping, at, buffer, to, n);
    } else {
      pair.download(buffer, to, mapping, at, n);
    }
  }

  /** A file that became shorter has no pages behind its end. */
  private void requireThere(long offset, long length, PathCall call) {
    long size = file.size();
    if (offset + length > size) {
      throw new StorageException(
          Kind.SHORT_READ,
          call.source(),
          offset,
          length,
          "the file has shrunk from %d to %d bytes".formatted(mapping.byteSize(), size),
          null);
    }
  }

  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    CloseAll.all(windows, owner, ownsFile ? file : null);
  }
}
