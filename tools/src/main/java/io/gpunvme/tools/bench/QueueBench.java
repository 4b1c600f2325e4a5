package io.gpunvme.tools.bench;

import static io.gpunvme.gpu.queue.DeviceLayout.setInt;
import static io.gpunvme.gpu.queue.DeviceLayout.setLong;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.QueueCounters;
import io.gpunvme.tools.bench.BenchLayout.BenchArgs;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Measures an initiator: commands per second through its queues, and the latency of one command,
 * against a {@link Responder} that answers at once. For one thread.
 *
 * <p>Every repetition is checked: both sides counted as many commands as were asked for, each
 * command was what it should be and came once, all completions were success, and no counter of
 * trouble moved.
 */
final class QueueBench implements AutoCloseable {
  private static final long TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(3);

  /** For the responder's threads, or its kernel, to be there before the clock runs. */
  private static final long SETTLE_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

  private static final int WARP = 32;
  private static final double NANOS_PER_SECOND = 1e9;

  private final Accelerator accelerator;
  private final BenchKernels kernels;
  private final BenchKernels responder;
  private final int threads;

  /**
   * @param threads of the responder for queues in host memory; fewer than processors, so that
   *     something is left for the rest of the machine
   */
  static QueueBench open(GpuAccelerator accelerator, int threads) {
    List<String> names = new ArrayList<>();
    for (BenchKernel kernel : BenchKernel.values()) {
      names.add(kernel.symbol());
    }
    names.add(RoundTrip.KERNEL);
    CudaBenchKernels bench = CudaBenchKernels.load(accelerator, "bench", names);
    try {
      BenchKernels responder =
          CudaBenchKernels.load(accelerator, "responder", List.of(GpuResponder.KERNEL));
      return new QueueBench(accelerator, bench, responder, threads);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, bench::close);
      throw e;
    }
  }

  /** With other kernels, which are closed with this. */
  QueueBench(Accelerator accelerator, BenchKernels kernels, BenchKernels responder, int threads) {
    this.accelerator = accelerator;
    this.kernels = kernels;
    this.responder = responder;
    this.threads = threads;
  }

  /** What one repetition came to. */
  private record Outcome(long nanos, ResponderCounts answered, QueueCounters counters) {}

  /**
   * Commands per second.
   *
   * @throws BenchException if a count or a command was wrong
   */
  Measurement throughput(QueueCase c, Repetitions repetitions) {
    long[] stores = new long[1];
    long[] seen = new long[1];
    try (BenchQueues queues = queues(c);
        KernelOutput output = new KernelOutput(accelerator, c)) {
      prime(c, queues, output);
      double[] samples =
          repetitions.samples(
              () -> {
                Outcome outcome = once(c, queues, output);
                QueueCounters counters = outcome.counters();
                stores[0] = Math.max(stores[0], counters.sqDoorbells() + counters.cqDoorbells());
                seen[0] = Math.max(seen[0], outcome.answered().doorbells());
                return c.total() * NANOS_PER_SECOND / outcome.nanos();
              });
      Map<String, Object> conditions = conditions(c);
      Measurement rate = Measurement.of(c.id(), "commands/s", samples, conditions);
      conditions.put("doorbells_per_command", (double) stores[0] / c.total());
      conditions.put("doorbell_changes_seen", seen[0]);
      conditions.put("ns_per_command", NANOS_PER_SECOND / rate.median());
      conditions.put("slowest_to_median", rate.min() / rate.median());
      return Measurement.of(c.id(), "commands/s", samples, conditions);
    }
  }

  /**
   * Nanoseconds from before a command was built until its status was known, as the GPU's clock
   * says; each sample is a repetition's median.
   *
   * @throws BenchException if a count or a command was wrong
   */
  Measurement latency(QueueCase c, Repetitions repetitions) {
    Latencies all = new Latencies();
    try (BenchQueues queues = queues(c);
        KernelOutput output = new KernelOutput(accelerator, c)) {
      prime(c, queues, output);
      double[] samples =
          repetitions.samples(
              () -> {
                once(c, queues, output);
                return all.add(output.latencies());
              });
      Map<String, Object> conditions = conditions(c);
      all.describe(conditions);
      return Measurement.of(c.id(), "ns", samples, conditions);
    }
  }

  /** What a bare exchange of words between GPU and CPU takes: the limit of {@link #latency}. */
  Measurement roundTrip(Repetitions repetitions) {
    return RoundTrip.measure(accelerator, kernels, repetitions);
  }

  private BenchQueues queues(QueueCase c) {
    return new BenchQueues(accelerator, c.shape(), TIMEOUT_NANOS);
  }

  private Map<String, Object> conditions(QueueCase c) {
    Map<String, Object> conditions = new LinkedHashMap<>();
    QueueShape shape = c.shape();
    conditions.put("queue_pairs", shape.queues());
    conditions.put("depth", shape.depth());
    conditions.put("warps", c.warps());
    if (c.kernel().served()) {
      conditions.put("serving_warps", c.servingBlocks() * c.warpsPerBlock());
    }
    if (c.kernel().crowded()) {
      conditions.put("warps_per_block", c.warpsPerBlock());
      conditions.put("lanes", c.lanes());
      conditions.put("arrival", c.arrival().toString());
    }
    conditions.put("commands", c.total());
    conditions.put("registers", kernels.registers(c.kernel().symbol()));
    conditions.put(
        "responder", shape.vram() ? "kernel" : Math.min(threads, shape.queues()) + " Java threads");
    return conditions;
  }

  /**
   * Runs the kernel once with nothing to do: what the driver does before a first launch may wait
   * for every other kernel, and a responder would wait for this one.
   */
  private void prime(QueueCase c, BenchQueues queues, KernelOutput output) {
    output.clear();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment args = arguments(arena, c, queues, output);
      setInt(args, BenchArgs.COMMANDS, 0);
      KernelDeadline.await(start(c, args), c.id(), queues::stop);
    }
  }

  private LaunchedKernel start(QueueCase c, MemorySegment args) {
    int blocks = c.servingBlocks() + c.callingBlocks();
    return kernels.start(c.kernel().symbol(), blocks, c.warpsPerBlock() * WARP, args);
  }

  // ---- one repetition

  private Outcome once(QueueCase c, BenchQueues queues, KernelOutput output) {
    queues.reset();
    output.clear();
    try (Responder answering = respond(c, queues)) {
      LockSupport.parkNanos(SETTLE_NANOS);
      LaunchedKernel run;
      try (Arena arena = Arena.ofConfined()) {
        run = start(c, arguments(arena, c, queues, output));
      }
      KernelDeadline.await(run, c.id(), queues::stop);
      ResponderCounts counts = answering.end();
      QueueCounters counters = queues.counters();
      check(c, output, counts, counters, queues.errors());
      return new Outcome(run.nanos(), counts, counters);
    }
  }

  private Responder respond(QueueCase c, BenchQueues queues) {
    return c.shape().vram()
        ? new GpuResponder(accelerator, responder, queues)
        : new LeanResponder(queues, threads, /* ordered= */ !c.kernel().crowded());
  }

  private static MemorySegment arguments(
      Arena arena, QueueCase c, BenchQueues queues, KernelOutput output) {
    MemorySegment args = arena.allocate(BenchArgs.SIZE, Long.BYTES);
    setLong(args, BenchArgs.QUEUES, queues.deviceAddress());
    setLong(args, BenchArgs.DONE, output.done());
    setLong(args, BenchArgs.FAILED, output.failed());
    setLong(args, BenchArgs.LATENCIES, output.latencyTable());
    setInt(args, BenchArgs.QUEUE_COUNT, c.shape().queues());
    setInt(args, BenchArgs.COMMANDS, c.commands());
    setInt(args, BenchArgs.NSID, BenchQueues.NSID);
    setInt(args, BenchArgs.LANES, c.lanes());
    setInt(args, BenchArgs.MODE, c.arrival().ordinal());
    setInt(args, BenchArgs.SERVERS, c.servingBlocks());
    setLong(args, BenchArgs.CALLERS, output.callers());
    return args;
  }

  private static void check(
      QueueCase c,
      KernelOutput output,
      ResponderCounts counts,
      QueueCounters counters,
      int errors) {
    long trouble =
        counters.timeouts()
            + counters.failures()
            + counters.late()
            + counters.stale()
            + counters.unknown()
            + counters.malformed()
            + errors;
    long done = output.sumOfDone();
    long failed = output.sumOfFailed();
    boolean right =
        done == c.total()
            && failed == 0
            && counts.answered() == c.total()
            && counts.wrong() == 0
            && counts.sum() == c.sumOfNumbers()
            && trouble == 0;
    if (!right) {
      throw new BenchException(
          ("%s: of %d commands, %d succeeded and %d failed; the responder answered %d, of them %d"
                  + " wrong (sum of numbers %d, expected %d); %s, %d logged errors")
              .formatted(
                  c.id(),
                  c.total(),
                  done,
                  failed,
                  counts.answered(),
                  counts.wrong(),
                  counts.sum(),
                  c.sumOfNumbers(),
                  counters,
                  errors));
    }
  }

  @Override
  public void close() {
    kernels.close();
    responder.close();
  }
}
