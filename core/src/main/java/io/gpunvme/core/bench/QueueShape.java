package io.gpunvme.core.bench;

import io.gpunvme.nvme.InvalidRequestException;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.Sqe;

/**
 * Queues of a benchmark without a controller: how many, how deep, and where their parts lie. The
 * rings are as long as those of other device queues: SQ &gt; depth, CQ &ge; 2 depth, powers of two.
 *
 * @param vram rings and doorbells in GPU memory, else in pinned host memory
 * @param shared for any number of threads, or one warp each
 * @param queues 1..{@link #MAX_QUEUES}
 * @param depth commands in flight per queue, 1..{@link #MAX_DEPTH}; a multiple of 32 for shared
 *     queues
 */
record QueueShape(boolean vram, boolean shared, int queues, int depth) {
  /** More than any GPU's warps of one block each keep busy. */
  static final int MAX_QUEUES = 1024;

  static final int MAX_DEPTH = 4096;

  private static final int WARP = 32;
  private static final long PAGE = 4096;

  /** Apart by more than a line of any cache: two doorbells are never one transaction. */
  private static final long DOORBELL_STRIDE = 256;

  QueueShape {
    if (queues < 1 || queues > MAX_QUEUES) {
      throw new InvalidRequestException("queue pairs " + queues + " is outside 1.." + MAX_QUEUES);
    }
    if (depth < 1 || depth > MAX_DEPTH || (shared && depth % WARP != 0)) {
      throw new InvalidRequestException(
          "depth %d is outside 1..%d%s"
              .formatted(depth, MAX_DEPTH, shared ? " or not a multiple of 32" : ""));
    }
  }

  int sqBits() {
    return bits(depth + 1);
  }

  int cqBits() {
    return bits(2 * depth);
  }

  int slotBits() {
    return Math.max(1, bits(depth));
  }

  /** The smallest n with 2^n at least {@code entries}. */
  private static int bits(int entries) {
    return Integer.SIZE - Integer.numberOfLeadingZeros(entries - 1);
  }

  int sqSize() {
    return 1 << sqBits();
  }

  // ---- rings, one queue's after the other's

  long ringBytes() {
    return queues * stride();
  }

  long sqOffset(int queue) {
    return queue * stride();
  }

  long cqOffset(int queue) {
    return sqOffset(queue) + pages((long) sqSize() * Sqe.SIZE);
  }

  private long stride() {
    return pages((long) sqSize() * Sqe.SIZE) + pages((1L << cqBits()) * Cqe.SIZE);
  }

  private static long pages(long bytes) {
    return Math.ceilDiv(bytes, PAGE) * PAGE;
  }

  // ---- doorbells

  long doorbellBytes() {
    return queues * DOORBELL_STRIDE;
  }

  long doorbellOffset(int queue) {
    return queue * DOORBELL_STRIDE;
  }

  long cqDoorbellOffset(int queue) {
    return doorbellOffset(queue) + DOORBELL_STRIDE / 2;
  }
}
