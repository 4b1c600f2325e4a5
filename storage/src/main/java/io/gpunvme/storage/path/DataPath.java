package io.gpunvme.storage.path;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import java.util.List;

/**
 * One way to move bytes between one source and an accelerator's memory, open. Safe for all threads;
 * transfers of several threads run side by side.
 */
public interface DataPath extends AutoCloseable {
  /** The kind of path. */
  PathKind kind();

  /**
   * How it works for this source, in a few words, e.g. {@code O_DIRECT, io_uring, depth 32}. Facts
   * that only show while it works (cuFile's compatibility mode) appear in it later.
   */
  String mode();

  /** Bytes in the source now. */
  long size();

  /**
   * The best alignment of offsets, lengths and buffer offsets, a power of two. Other values work,
   * but take a detour that is counted as staging.
   */
  int alignment();

  /**
   * Whether it joins and stages the ranges of a read by itself. Of the others, whoever opens them
   * plans the reads.
   */
  default boolean plansReads() {
    return false;
  }

  /** The rate that this path expects for such a request, 10^9 bytes a second. */
  double expected(RequestShape shape);

  /**
   * The most memory of the accelerator that it takes for itself, bytes, for transfers of up to half
   * a million commands with up to four buffers of up to 1 GiB at a time. Host memory does not
   * count.
   */
  default long gpuBytes() {
    return 0;
  }

  /**
   * Moves all bytes of all ranges and returns when they have arrived: later work on the accelerator
   * sees the data of a read.
   *
   * <p>After a failure nothing uses the buffers any more; their contents in the ranges are
   * undefined.
   *
   * <p>The path counts the bytes that it moved, also before a failure.
   *
   * @param ranges inside the source and their buffers, in the preferred order; those of a read do
   *     not overlap in the buffers
   * @throws StorageException the first failure
   */
  void transfer(Direction direction, List<Range> ranges, PathCall call);

  /**
   * The same for one range. Paths that can do it without a list allocate nothing by it.
   *
   * @param offset first byte in the source
   * @param bufferOffset first byte in the buffer
   * @param length bytes
   * @throws StorageException as {@link #transfer(Direction, List, PathCall)}
   */
  default void transfer(
      Direction direction,
      long offset,
      DeviceBuffer buffer,
      long bufferOffset,
      long length,
      PathCall call) {
    transfer(direction, List.of(new Range(offset, buffer, bufferOffset, length)), call);
  }

  /**
   * Takes memory for what cannot go straight to buffers. Otherwise it is taken when it is first
   * needed; a GPU's driver may then wait for streams, and they for what is to be staged.
   */
  default void takeStaging() {}

  /** Prepares a buffer for transfers. Correctness does not need it; it may make them faster. */
  default void register(DeviceBuffer buffer) {}

  /** Undoes {@link #register}. No transfer uses the buffer. */
  default void deregister(DeviceBuffer buffer) {}

  /** Frees everything. No transfer is running. Idempotent. */
  @Override
  void close();
}
