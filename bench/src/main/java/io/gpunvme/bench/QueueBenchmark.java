package io.gpunvme.bench;

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
 * Random 4 KiB reads at queue depth 64 through the driver and the strict embedded controller:
 * commands per second, end to end.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
public class QueueBenchmark {
  /** The controller works on a thread of its own, or on the driver's thread between its turns. */
  @Param({"thread", "inline"})
  public String controller = "";

  /** Whether the controller moves data, or only checks and completes. */
  @Param({"copy", "none"})
  public String data = "";

  private @Nullable QueueRig rig;

  /** Brings the controller up and fills the queue. */
  @Setup(Level.Trial)
  public void setup() {
    rig = new QueueRig(controller.equals("thread") ? 1 : 0, data.equals("copy"), device -> device);
    rig.start();
  }

  /** Shuts down; fails the run if data was wrong. */
  @TearDown(Level.Trial)
  public void close() {
    if (rig != null) {
      rig.close();
    }
  }

  /** Turns until another queue's worth of commands is complete. */
  @Benchmark
  @OperationsPerInvocation(QueueRig.DEPTH)
  public long reads() {
    QueueRig r = java.util.Objects.requireNonNull(rig);
    boolean inline = controller.equals("inline");
    long goal = r.done() + QueueRig.DEPTH;
    while (r.done() < goal) {
      if (inline) {
        r.work();
      }
      r.turn();
    }
    return goal;
  }
}
