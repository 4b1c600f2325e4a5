package io.gpunvme.tools.bench;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.queue.QueueSizes;

/**
 * Queues of a benchmark without a controller: how many, how deep, and where their parts lie. The
 * rings are as long as those of other device queues: SQ &gt; depth, CQ &ge; 2 depth, powers of two.
 *
 * @param vram rings and doorbells in GPU memory, else in pinned host memory
 * @param shared for any number of threads, or one owner each, a warp or a block
 * @param queues 1..{@link #MAX_QUEUES}
 * @param depth commands in flight per queue, 1..{@link #MAX_DEPTH}; a multiple of 32 for shared
 *     queues
 */
record QueueShape(boolean vram, boolean shared, int queues, int depth) {
  /** More than any GPU's warps of one block each keep busy. */
  static final int MAX_QUEUES = 1024;

  static final int MAX_DEPTH = QueueSizes.MAX_DEPTH;

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

  private QueueSizes sizes() {
    return new QueueSizes(depth, shared);
  }

  int sqBits() {
    return sizes().sqBits();
  }

  int cqBits() {
    return sizes().cqBits();
  }

  int slotBits() {
    return sizes().slotBits();
  }

  int sqSize() {
    return sizes().sqSize();
  }

  // ---- rings, one queue's after the other's

  long ringBytes() {
    return queues * stride();
  }

  long sqOffset(int queue) {
    return queue * stride();
  }

  long cqOffset(int queue) {
    return sqOffset(queue) + pages(sizes().sqBytes());
  }

  private long stride() {
    return pages(sizes().sqBytes()) + pages(sizes().cqBytes());
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
