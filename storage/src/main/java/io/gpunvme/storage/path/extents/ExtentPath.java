package io.gpunvme.storage.path.extents;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.BufferCopies;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.RequestShape;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.StorageFailures;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A file by way of a path of its device. Read-only: the file system would not know. Holes read as
 * zeros, which nobody reads from anywhere.
 */
public final class ExtentPath implements DataPath {
  private static final long ZERO_BYTES = 4 << 20;

  private final DataPath device;
  private final List<FileExtent> extents;
  private final long[] starts;
  private final long size;
  private final Accelerator accelerator;
  private @Nullable DeviceBuffer zeros;

  /**
   * A file.
   *
   * @param device stays the caller's
   * @param extents in order, from byte 0 without gaps
   */
  public ExtentPath(DataPath device, List<FileExtent> extents, Accelerator accelerator) {
    this.device = device;
    this.extents = List.copyOf(extents);
    this.accelerator = accelerator;
    starts = extents.stream().mapToLong(FileExtent::fileOffset).toArray();
    size = extents.isEmpty() ? 0 : extents.getLast().end();
  }

  @Override
  public PathKind kind() {
    return device.kind();
  }

  @Override
  public String mode() {
    return "a file of %d extents, %s".formatted(extents.size(), device.mode());
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public int alignment() {
    return device.alignment();
  }

  @Override
  public long gpuBytes() {
    return device.gpuBytes() + ZERO_BYTES;
  }

  @Override
  public double expected(RequestShape shape) {
    return device.expected(shape);
  }

  @Override
  public void transfer(Direction direction, List<Range> ranges, PathCall call) {
    if (direction == Direction.WRITE) {
      throw new StorageException(
          Kind.UNSUPPORTED,
          call.source(),
          -1,
          -1,
          "files of an unmounted file system are read only",
          null);
    }
    List<Range> reads = new ArrayList<>();
    List<Range> holes = new ArrayList<>();
    ranges.forEach(r -> split(r, reads, holes));
    if (!reads.isEmpty()) {
      device.transfer(Direction.READ, reads, call);
    }
    if (!holes.isEmpty()) {
      clear(holes, call);
    }
  }

  private void split(Range r, List<Range> reads, List<Range> holes) {
    int i = extentAt(r.offset());
    for (long done = 0; done < r.length(); i++) {
      FileExtent e = extents.get(i);
      long at = r.offset() + done;
      long n = Math.min(r.length() - done, e.end() - at);
      long from = e.isZeros() ? at : e.deviceOffset() + (at - e.fileOffset());
      (e.isZeros() ? holes : reads).add(new Range(from, r.buffer(), r.bufferOffset() + done, n));
      done += n;
    }
  }

  /** The extent that a byte lies in. */
  private int extentAt(long offset) {
    int low = 0;
    int high = starts.length;
    while (high - low > 1) {
      int middle = (low + high) >>> 1;
      if (starts[middle] <= offset) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /** One transfer at a time: holes are rare, and filling them is fast. */
  private synchronized void clear(List<Range> holes, PathCall call) {
    long bytes = 0;
    try (BufferCopies copies = accelerator.copies()) {
      DeviceBuffer source = zeros();
      for (Range hole : holes) {
        call.throwIfCancelled(hole.offset(), hole.length());
        for (long done = 0; done < hole.length(); ) {
          long n = Math.min(ZERO_BYTES, hole.length() - done);
          copies.add(source, 0, hole.buffer(), hole.bufferOffset() + done, n);
          done += n;
        }
        bytes += hole.length();
      }
      copies.await();
    } catch (RuntimeException e) {
      throw StorageFailures.of(
          e, call.source(), holes.getFirst().offset(), holes.getFirst().length());
    }
    call.counters().read(bytes);
  }

  private DeviceBuffer zeros() {
    DeviceBuffer there = zeros;
    if (there == null) {
      there = accelerator.allocate(ZERO_BYTES);
      zeros = there;
    }
    return there;
  }

  @Override
  public void register(DeviceBuffer buffer) {
    device.register(buffer);
  }

  @Override
  public void deregister(DeviceBuffer buffer) {
    device.deregister(buffer);
  }

  @Override
  public synchronized void close() {
    DeviceBuffer there = zeros;
    zeros = null;
    if (there != null) {
      there.close();
    }
  }
}
