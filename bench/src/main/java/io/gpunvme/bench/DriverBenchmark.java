package io.gpunvme.bench;

import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * What one command costs the driver alone: submit, ring, poll, against a responder on the same
 * thread that only echoes CIDs.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class DriverBenchmark {
  private static final int PAGE = 4096;

  private @Nullable QueueRig rig;
  private @Nullable Echo echo;

  /** Brings a controller up, then takes its place on the I/O queue. */
  @Setup
  public void setup() {
    LastMapped[] spy = new LastMapped[1];
    QueueRig r =
        new QueueRig(
            0,
            false,
            device -> {
              spy[0] = new LastMapped(device);
              return spy[0];
            });
    rig = r;
    MemorySegment rings = Objects.requireNonNull(spy[0].rings(r.queue().sqSize()));
    echo = new Echo(rings, spy[0].doorbells(), r);
    r.start();
  }

  /** Fails the run if a command was lost. The controller never saw the I/O commands. */
  @TearDown
  public void close() {
    if (rig != null) {
      rig.close();
    }
  }

  /** Submit, ring, echo and poll of a queue's worth of commands. */
  @Benchmark
  @OperationsPerInvocation(QueueRig.DEPTH)
  public long commands() {
    QueueRig r = Objects.requireNonNull(rig);
    Echo e = Objects.requireNonNull(echo);
    long goal = r.done() + QueueRig.DEPTH;
    while (r.done() < goal) {
      e.answer();
      r.turn();
    }
    return goal;
  }

  /** Completes whatever the doorbell announces with success and the command's own CID. */
  private static final class Echo {
    private final MemorySegment sq;
    private final MemorySegment cq;
    private final MemorySegment doorbells;
    private final int qid;
    private final int sqSize;
    private final int cqSize;
    private int head;
    private int tail;
    private int phase = 1;

    Echo(MemorySegment rings, MemorySegment doorbells, QueueRig rig) {
      this.qid = rig.queue().qid();
      this.sqSize = rig.queue().sqSize();
      this.cqSize = rig.queue().cqSize();
      this.sq = rings;
      this.cq = rings.asSlice(Math.ceilDiv((long) sqSize * Sqe.SIZE, PAGE) * PAGE);
      this.doorbells = doorbells;
    }

    void answer() {
      int announced =
          doorbells.get(
              ValueLayout.JAVA_INT, Registers.sqTailDoorbell(qid, 0) - Registers.DOORBELLS);
      while (head != announced) {
        int cid = Sqe.cid(sq, (long) head * Sqe.SIZE);
        head = head + 1 == sqSize ? 0 : head + 1;
        Cqe.put(cq, (long) tail * Cqe.SIZE, 0, 0, head, qid, cid, 0, phase);
        if (++tail == cqSize) {
          tail = 0;
          phase ^= 1;
        }
      }
    }
  }

  /**
   * The device, remembering the memory of the queue pair that was mapped last before the buffer.
   */
  private static final class LastMapped implements PciFunction {
    private final SimulatedController device;
    private final java.util.List<MemorySegment> mapped = new java.util.ArrayList<>();

    LastMapped(SimulatedController device) {
      this.device = device;
    }

    MemorySegment rings(int sqSize) {
      // The last mapping is the data buffer; the one before it is the queue pair.
      MemorySegment rings = mapped.get(mapped.size() - 2);
      if (rings.byteSize() < (long) sqSize * Sqe.SIZE) {
        throw new IllegalStateException("not the memory of the queue pair");
      }
      return rings;
    }

    MemorySegment doorbells() {
      return device.bar(0).memory(Registers.DOORBELLS, PAGE);
    }

    @Override
    public BusRange map(MemorySegment memory) {
      mapped.add(memory);
      return device.map(memory);
    }

    @Override
    public String name() {
      return device.name();
    }

    @Override
    public Bar bar(int index) {
      return device.bar(index);
    }

    @Override
    public ConfigSpace config() {
      return device.config();
    }

    @Override
    public int addressBits() {
      return device.addressBits();
    }

    @Override
    public void reset() {
      device.reset();
    }

    @Override
    public void close() {
      device.close();
    }
  }
}
