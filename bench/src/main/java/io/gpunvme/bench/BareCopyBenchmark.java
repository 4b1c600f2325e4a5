package io.gpunvme.bench;

import io.gpunvme.ffi.SharedMemory;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** The limit: one thread copying the same random 4 KiB blocks with nothing around it. */
@State(Scope.Thread)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
public class BareCopyBenchmark {
  private static final int TARGETS = QueueRig.DEPTH;

  private final Blocks blocks = new Blocks();
  private SharedMemory image = SharedMemory.allocate("bench-image", Blocks.IMAGE);
  private SharedMemory target = SharedMemory.allocate("bench-target", (long) TARGETS * Blocks.SIZE);
  private long wrong;

  /** Fills the image. */
  @Setup
  public void fill() {
    for (long at = 0; at < Blocks.IMAGE; at += Blocks.SIZE) {
      Blocks.stamp(image.segment(), at, at / Blocks.SIZE);
    }
  }

  /** Frees the memory and fails the run if a block was wrong. */
  @TearDown
  public void close() {
    image.close();
    target.close();
    if (wrong != 0) {
      throw new IllegalStateException(wrong + " blocks were wrong");
    }
  }

  /** As many blocks as the queue benchmarks keep in flight. */
  @Benchmark
  @OperationsPerInvocation(TARGETS)
  public void copy() {
    MemorySegment from = image.segment();
    MemorySegment to = target.segment();
    for (int i = 0; i < TARGETS; i++) {
      long block = blocks.next();
      long at = (long) i * Blocks.SIZE;
      MemorySegment.copy(from, block * Blocks.SIZE, to, at, Blocks.SIZE);
      if (!Blocks.is(to, at, block)) {
        wrong++;
      }
    }
  }
}
