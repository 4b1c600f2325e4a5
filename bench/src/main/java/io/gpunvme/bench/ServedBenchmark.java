package io.gpunvme.bench;

import io.gpunvme.ffi.SharedMemory;
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

  /** Size of the namespace: in a core's own cache, and beyond all caches as they are shared. */
  @Param({"1", "64"})
  public int mebibytes;

  private @Nullable QueueRig rig;
  private @Nullable SharedMemory source;
  private @Nullable SharedMemory target;
  private Blocks blocks = new Blocks();
  private long wrong;

  /** Brings the controller up and fills the queue. */
  @Setup(Level.Trial)
  public void setup() {
    long image = (long) mebibytes << 20;
    blocks = new Blocks(image);
    if (transport.equals("copy")) {
      SharedMemory from = SharedMemory.allocate("bench-image", image);
      for (long block = 0; block < blocks.count(); block++) {
        Blocks.stamp(from.segment(), block * Blocks.SIZE, block);
      }
      source = from;
      target = SharedMemory.allocate("bench-target", (long) depth * Blocks.SIZE);
    } else {
      rig =
          transport.equals("process") ? QueueRig.apart(depth, image) : QueueRig.here(depth, image);
      rig.start();
    }
  }

  /** Shuts down; fails the run if data was wrong. */
  @TearDown(Level.Trial)
  public void close() {
    if (rig != null) {
      rig.close();
    }
    if (source != null && target != null) {
      source.close();
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

  private static long commands(QueueRig r) {
    long goal = r.done() + OPERATIONS;
    while (r.done() < goal) {
      r.turn();
    }
    return goal;
  }

  private long copies() {
    MemorySegment from = Objects.requireNonNull(source).segment();
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
