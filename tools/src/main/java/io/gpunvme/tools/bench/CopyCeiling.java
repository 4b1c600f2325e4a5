package io.gpunvme.tools.bench;

import io.gpunvme.gpu.accel.DeviceBuffer;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The rate at which the threads of an embedded SSD could copy if they did nothing else: random
 * single blocks of its medium, to the places where {@link RandomBench} needs them. For one thread.
 */
final class CopyCeiling {
  /** Blocks that a thread takes at once from what is left: a slow one holds up nobody. */
  private static final int CHUNK = 32;

  private static final double NANOS_PER_SECOND = 1e9;

  private final MemorySegment medium;
  private final MemorySegment target;
  private final int blockSize;
  private final int threads;
  private final long commands;

  /**
   * @param medium with {@link BlockPattern#stampBlocks} on it
   * @param target host memory, written over
   * @param commands in all, in each repetition
   */
  CopyCeiling(
      MemorySegment medium, DeviceBuffer target, int blockSize, int threads, long commands) {
    this.medium = medium;
    this.target = target.segment();
    this.blockSize = blockSize;
    this.threads = threads;
    this.commands = Math.ceilDiv(commands, CHUNK) * CHUNK;
  }

  /**
   * Blocks per second.
   *
   * @throws BenchException if a block did not arrive
   */
  Measurement measure(String id, Repetitions repetitions) {
    try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
      int[] repetition = new int[1];
      double[] samples = repetitions.samples(() -> once(id, pool, repetition[0]++));
      Map<String, Object> conditions = new LinkedHashMap<>();
      conditions.put("block_bytes", blockSize);
      conditions.put("medium_bytes", medium.byteSize());
      conditions.put("target_bytes", target.byteSize());
      conditions.put("blocks", commands);
      conditions.put("threads", threads);
      return Measurement.of(id, "commands/s", samples, conditions);
    }
  }

  private double once(String id, ExecutorService pool, int repetition) {
    CyclicBarrier together = new CyclicBarrier(threads);
    AtomicLong next = new AtomicLong();
    List<Callable<Share>> shares = new ArrayList<>();
    for (int t = 0; t < threads; t++) {
      Share share = new Share(t, (long) repetition << Integer.SIZE);
      shares.add(() -> share.run(together, next));
    }
    long begin = Long.MAX_VALUE;
    long end = Long.MIN_VALUE;
    long wrong = 0;
    try {
      for (Future<Share> done : pool.invokeAll(shares)) {
        Share share = done.get();
        begin = Math.min(begin, share.begin);
        end = Math.max(end, share.end);
        wrong += share.wrong();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new BenchException(id + " was interrupted");
    } catch (ExecutionException e) {
      throw new BenchException(id + ": " + e.getCause());
    }
    if (wrong != 0) {
      throw new BenchException(id + ": " + wrong + " blocks differ from those of the medium");
    }
    return commands * NANOS_PER_SECOND / (end - begin);
  }

  /** What one thread copies, to a part of the target that is its own. */
  private final class Share {
    private static final long NOTHING = -1;

    private final long seed;
    private final long firstPlace;
    private final long[] last;
    private long begin;
    private long end;

    Share(int thread, long seed) {
      int places = Math.toIntExact(target.byteSize() / blockSize / threads);
      this.seed = seed;
      firstPlace = (long) thread * places;
      last = new long[places];
      Arrays.fill(last, NOTHING);
    }

    Share run(CyclicBarrier together, AtomicLong next) throws Exception {
      together.await();
      begin = System.nanoTime();
      copy(next);
      end = System.nanoTime();
      return this;
    }

    private void copy(AtomicLong next) {
      long blocks = medium.byteSize() / blockSize;
      int place = 0;
      for (long i = next.getAndAdd(CHUNK); i < commands; i = next.getAndAdd(CHUNK)) {
        for (int k = 0; k < CHUNK; k++) {
          long block = Long.remainderUnsigned(BlockPattern.hash(seed ^ i + k), blocks);
          long to = (firstPlace + place) * blockSize;
          MemorySegment.copy(medium, block * blockSize, target, to, blockSize);
          last[place] = block;
          place = place + 1 == last.length ? 0 : place + 1;
        }
      }
    }

    long wrong() {
      long wrong = 0;
      for (int place = 0; place < last.length; place++) {
        long at = (firstPlace + place) * blockSize;
        boolean right =
            last[place] == NOTHING || BlockPattern.isBlock(target, at, blockSize, last[place]);
        wrong += right ? 0 : 1;
      }
      return wrong;
    }
  }
}
