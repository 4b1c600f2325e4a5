package io.gpunvme.storage.path;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import java.util.List;

/**
 * One way to move bytes between one source and an accelerator's memory, open. Safe for all threads;
 * transfers of several threads run side by side.
 */
public interface DataPath extends AutoCloseable {
  /** Which way it is. */
  PathKind kind();

  /**
   * How it works for this source, in a few words, e.g. {@code O_DIRECT, io_uring, depth 32}. What
   * turns out only while it works (cuFile's compatibility mode) is in it afterwards.
   */
  String mode();

  /** Bytes in the source now. */
  long size();

  /**
   * What offsets, lengths and buffer offsets are best multiples of, a power of two. Others work and
   * cost a detour, which is counted as staging.
   */
  int alignment();

  /**
   * Whether it joins and stages the ranges of a read by itself. Of the others, whoever opens them
   * plans the reads.
   */
  default boolean plansReads() {
    return false;
  }

  /** What this path expects to reach for such a request, 10^9 bytes a second. */
  double expected(RequestShape shape);

  /**
   * Most memory of the accelerator that it takes for itself, bytes, for transfers of up to half a
   * million commands with up to four buffers of up to 1 GiB at a time. Host memory does not count.
   */
  default long gpuBytes() {
    return 0;
  }

  /**
   * Moves all bytes of all ranges and returns when they are where they belong: read data can be
   * seen by work that the accelerator is given from now on.
   *
   * <p>On failure nothing is at work in the buffers any more; what they hold in the ranges is
   * undefined.
   *
   * <p>What was moved is counted by the path, as far as it came.
   *
   * @param ranges inside the source and their buffers, in an order that is a wish only; of a read,
   *     they do not overlap in the buffers
   * @throws StorageException the first failure
   */
  void transfer(Direction direction, List<Range> ranges, PathCall call);

  /** Prepares for transfers with a buffer. Unneeded for correctness; may make them faster. */
  default void register(DeviceBuffer buffer) {}

  /** Takes that back. No transfer uses the buffer. */
  default void deregister(DeviceBuffer buffer) {}

  /** Frees everything. No transfer is running. Idempotent. */
  @Override
  void close();
}
