package io.gpunvme.tools.bench;

import io.gpunvme.base.InvalidRequestException;

/**
 * One measurement of {@link QueueBench}.
 *
 * @param id stable name of the result
 * @param kernel what drives the queues
 * @param shape the queues
 * @param warps that call; of exclusive queues one per queue, or {@link #WARPS_PER_OWNER} where a
 *     block owns each
 * @param lanes of each warp that call, 1..32; 1 where one lane speaks for the warp
 * @param arrival how the lanes come
 * @param commands of each warp (exclusive, block) or of each calling lane (shared, served), &gt; 0
 */
record QueueCase(
    String id,
    BenchKernel kernel,
    QueueShape shape,
    int warps,
    int lanes,
    Arrival arrival,
    int commands) {
  /** As many as fit on any GPU of today at once; waiting warps beyond that would starve. */
  static final int MAX_WARPS = 4096;

  /** Warps of a block that owns a queue, as the kernel is compiled for at most. */
  static final int WARPS_PER_OWNER = 4;

  private static final int WARP = 32;
  private static final int MOST_PER_BLOCK = 8;
  private static final int WARPS_PER_STEP = 128;

  QueueCase {
    if (warps < 1 || warps > MAX_WARPS) {
      throw new InvalidRequestException("warps " + warps + " is outside 1.." + MAX_WARPS);
    }
    if (lanes < 1 || lanes > WARP || commands < 1) {
      throw new IllegalArgumentException(lanes + " lanes, " + commands + " commands");
    }
    if ((long) warps * lanes * commands > 0xFFFF_FFFFL) {
      throw new IllegalArgumentException("the number of commands must fit 32 bits");
    }
  }

  /** One warp per queue. */
  static QueueCase exclusive(String id, boolean vram, int queues, int depth, long total) {
    int each = (int) Math.max(1, total / queues);
    QueueShape shape = new QueueShape(vram, false, queues, depth);
    return new QueueCase(id, BenchKernel.EXCLUSIVE, shape, queues, 1, Arrival.TOGETHER, each);
  }

  /** One block per queue. */
  static QueueCase block(String id, boolean vram, int queues, int depth, long total) {
    int warps = queues * WARPS_PER_OWNER;
    int each = (int) Math.max(1, total / warps);
    QueueShape shape = new QueueShape(vram, false, queues, depth);
    return new QueueCase(id, BenchKernel.BLOCK, shape, warps, 1, Arrival.TOGETHER, each);
  }

  /** Warps on shared queues; {@code kernel} says who serves. */
  static QueueCase shared(
      String id,
      BenchKernel kernel,
      QueueShape shape,
      int warps,
      int lanes,
      Arrival arrival,
      long total) {
    int each = (int) Math.max(50, total / ((long) warps * lanes));
    return new QueueCase(id, kernel, shape, warps, lanes, arrival, each);
  }

  /** Commands in all. */
  long total() {
    return (long) warps * lanes * commands;
  }

  /** Sum of all commands' numbers, modulo 2^64. */
  long sumOfNumbers() {
    return switch (kernel) {
      // Each queue's commands are numbered from 0.
      case EXCLUSIVE, BLOCK -> shape.queues() * upTo(total() / shape.queues());
      case SHARED, SERVED, EXCLUSIVE_QD1, SHARED_QD1, SERVED_QD1 -> upTo(total());
    };
  }

  /** 0 + 1 + … + (n - 1). */
  private static long upTo(long n) {
    return n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n;
  }

  /**
   * Warps of each block: as many as own a queue together; else few warps are spread, many share
   * blocks.
   */
  int warpsPerBlock() {
    if (kernel == BenchKernel.BLOCK) {
      return WARPS_PER_OWNER;
    }
    if (!kernel.crowded()) {
      return 1;
    }
    int most = Math.clamp(warps / WARPS_PER_STEP, 1, MOST_PER_BLOCK);
    while (warps % most != 0) {
      most--;
    }
    return most;
  }

  /** Blocks whose warps call. */
  int callingBlocks() {
    return warps / warpsPerBlock();
  }

  /** Blocks before them whose warps serve, a warp for each queue at least; 0 where callers do. */
  int servingBlocks() {
    return kernel.served() ? Math.ceilDiv(shape.queues(), warpsPerBlock()) : 0;
  }
}
