package io.gpunvme.bench;

import io.gpunvme.ffi.SharedMemory;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * Random 4 KiB reads from a controller in another process, over vfio-user, beside those from one in
 * this process and plain copies of the same blocks.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
public class ServedBenchmark {
  private static final int OPERATIONS = 256;

  /** Plain copies, a controller on a thread of this process, or one in another process. */
  @Param({"copy", "here", "process"})
  public String transport = "";

  /** Commands in flight. */
  @Param({"1", "32"})
  public int depth;

  private @Nullable ServedRig rig;
  private @Nullable SharedMemory image;
  private @Nullable SharedMemory target;
  private final Blocks blocks = new Blocks(ServedRig.IMAGE);
  private long wrong;

  /** Brings the controller up and fills the queue. */
  @Setup(Level.Trial)
  public void setup() throws IOException {
    if (transport.equals("copy")) {
      SharedMemory from = SharedMemory.allocate("bench-image", ServedRig.IMAGE);
      for (long block = 0; block < blocks.count(); block++) {
        Blocks.stamp(from.segment(), block * Blocks.SIZE, block);
      }
      image = from;
      target = SharedMemory.allocate("bench-target", (long) depth * Blocks.SIZE);
    } else {
      rig = new ServedRig(transport.equals("process"), depth);
      rig.start();
    }
  }

  /** Shuts down; fails the run if data was wrong. */
  @TearDown(Level.Trial)
  public void close() throws IOException {
    if (rig != null) {
      rig.close();
    }
    if (image != null && target != null) {
      image.close();
      target.close();
    }
    if (wrong != 0) {
      throw new IllegalStateException(wrong + " blocks were wrong");
    }
  }

  /** So many reads, or copies. */
  @Benchmark
  @OperationsPerInvocation(OPERATIONS)
  public long reads() {
    return rig == null ? copies() : commands(rig);
  }

  private static long commands(ServedRig r) {
    long goal = r.done() + OPERATIONS;
    while (r.done() < goal) {
      r.turn();
    }
    return goal;
  }

  private long copies() {
    MemorySegment from = Objects.requireNonNull(image).segment();
    MemorySegment to = Objects.requireNonNull(target).segment();
    for (int i = 0; i < OPERATIONS; i++) {
      long block = blocks.next();
      long at = (long) (i % depth) * Blocks.SIZE;
      MemorySegment.copy(from, block * Blocks.SIZE, to, at, Blocks.SIZE);
      if (!Blocks.is(to, at, block)) {
        wrong++;
      }
    }
    return wrong;
  }
}
