package io.gpunvme.tools.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.WorkScope;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.gpu.transfer.TransferReport;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.storage.BlockRun;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * Reads blocks of SSDs by an initiator, all SSDs at once, and measures the rate. Every block that
 * arrives is checked. Writes nothing. For one thread.
 */
public final class SsdBench implements AutoCloseable {
  /** Of an SSD in a repetition; the first one has no more than these. */
  private static final int LEAST_COMMANDS = 2048;

  /** At least this often the queues are filled: when few commands are left, they are not full. */
  private static final int ROUNDS_OF_QUEUES = 16;

  /** About how long a repetition takes. */
  private static final double REPETITION_NANOS = 1e8;

  private static final long MOST_BYTES = 128L << 20;
  private static final double NANOS_PER_SECOND = 1e9;
  private static final double NANOS_PER_MICRO = 1e3;
  private static final int KIBIBYTE = 1 << 10;
  private static final int MEBIBYTE = 1 << 20;

  private final Accelerator accelerator;
  private final TransferListener listener;
  private final List<SsdLane> ssds = new ArrayList<>();
  private final long bytesEach;
  private final long rangeBytes;
  private final boolean known;

  private SsdBench(
      List<BlockRun> runs,
      Accelerator accelerator,
      InitiatorOptions options,
      BooleanSupplier cancelled,
      boolean known) {
    this.accelerator = accelerator;
    listener =
        new TransferListener() {
          @Override
          public void moved(long bytes) {}

          @Override
          public boolean isCancelled() {
            return cancelled.getAsBoolean();
          }
        };
    this.known = known;
    rangeBytes = runs.stream().mapToLong(BlockRun::bytes).sum();
    List<List<BlockRun>> perSsd =
        List.copyOf(
            runs.stream()
                .collect(
                    Collectors.groupingBy(
                        BlockRun::controller, LinkedHashMap::new, Collectors.toList()))
                .values());
    // What arrives lies in the accelerator's memory, and a copy or two of it in the host's.
    long room = Math.min(accelerator.availableBytes(), hostBytes()) / (4L * perSsd.size());
    bytesEach = Math.clamp(room / MEBIBYTE * MEBIBYTE, MEBIBYTE, MOST_BYTES);
    try {
      for (List<BlockRun> own : perSsd) {
        ssds.add(new SsdLane(own, accelerator, options, bytesEach, known));
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::close);
      throw e;
    }
  }

  private static long hostBytes() {
    try (CpuAccelerator host = CpuAccelerator.open()) {
      return host.availableBytes();
    }
  }

  /**
   * Opens queue pairs of each SSD.
   *
   * @param runs what may be read, at least one; their controllers stay the caller's
   * @param accelerator whose memory is read into; stays the caller's
   * @throws InvalidRequestException if the options do not fit an SSD
   * @throws io.gpunvme.nvme.DmaMappingException if an SSD does not reach memory of the placement
   */
  public static SsdBench open(
      List<BlockRun> runs, Accelerator accelerator, InitiatorOptions options) {
    return open(runs, accelerator, options, () -> false);
  }

  /**
   * The same, and measurements end early if they are told to.
   *
   * @param cancelled asked by several threads; then the measurement fails with a {@link
   *     io.gpunvme.nvme.CommandAbortedException}
   */
  public static SsdBench open(
      List<BlockRun> runs,
      Accelerator accelerator,
      InitiatorOptions options,
      BooleanSupplier cancelled) {
    return new SsdBench(runs, accelerator, options, cancelled, false);
  }

  /** The same of SSDs whose every word is the hash of its position. */
  static SsdBench ofHashedWords(
      List<BlockRun> runs, Accelerator accelerator, InitiatorOptions options) {
    return new SsdBench(runs, accelerator, options, () -> false, true);
  }

  /**
   * Random reads of one block each.
   *
   * @param block bytes, a multiple of the SSDs' logical blocks
   * @return commands per second of all SSDs together
   * @throws InvalidRequestException if an SSD has no such block
   * @throws BenchException if something else arrived than is there
   * @throws io.gpunvme.nvme.NvmeException if an SSD fails
   */
  public Measurement random(int block, Repetitions repetitions) {
    ssds.forEach(one -> one.requireBlocksOf(block));
    String id = "random.%s.%s".formatted(size(block), who());
    int commands = commandsFor(id, block);
    Tally tally = new Tally();
    double[] samples =
        repetitions.samples(
            () ->
                once(id, s -> s.planRandom(block, commands), tally)
                    .perSecond(tally.lastCommands()));
    Map<String, Object> conditions = new LinkedHashMap<>();
    conditions.put("block_bytes", block);
    tally.describe(conditions);
    Measurement rate = Measurement.of(id, "commands/s", samples, conditions);
    conditions.put("gb_per_s", rate.median() * block / NANOS_PER_SECOND);
    return rate.under(conditions);
  }

  /**
   * Reads of one block after the other, by commands as long as the SSDs take.
   *
   * @return 10^9 bytes per second of all SSDs together
   * @throws BenchException if something else arrived than is there
   * @throws io.gpunvme.nvme.NvmeException if an SSD fails
   */
  public Measurement stream(Repetitions repetitions) {
    long command = ssds.stream().mapToLong(s -> s.initiator().maxTransferBytes()).min().orElse(0);
    String id = "stream.%s.%s".formatted(size(command), who());
    Tally tally = new Tally();
    double[] samples =
        repetitions.samples(
            () ->
                once(id, s -> s.planNext(bytesEach), tally).perSecond(tally.lastBytes())
                    / NANOS_PER_SECOND);
    Map<String, Object> conditions = new LinkedHashMap<>();
    conditions.put("command_bytes", command);
    tally.describe(conditions);
    return Measurement.of(id, "GB/s", samples, conditions);
  }

  /** As many as a repetition has time for: SSDs differ by a factor of a hundred. */
  private int commandsFor(String id, int block) {
    int inFlight =
        ssds.stream()
            .mapToInt(s -> s.initiator().queuePairs() * s.initiator().depth())
            .max()
            .orElse(1);
    int most = (int) (bytesEach / block);
    int least = Math.min(Math.max(LEAST_COMMANDS, ROUNDS_OF_QUEUES * inFlight), most);
    Time first = once(id, s -> s.planRandom(block, least), new Tally());
    return Math.clamp((long) (least * REPETITION_NANOS / first.nanos()), least, most);
  }

  private String who() {
    return ssds.getFirst().initiator().name().toLowerCase(Locale.ROOT);
  }

  private static String size(long bytes) {
    return bytes >= MEBIBYTE && bytes % MEBIBYTE == 0
        ? bytes / MEBIBYTE + "m"
        : bytes >= KIBIBYTE && bytes % KIBIBYTE == 0 ? bytes / KIBIBYTE + "k" : bytes + "";
  }

  // ---- one repetition

  /** How long something took. */
  private record Time(long nanos) {
    double perSecond(long count) {
      return count * NANOS_PER_SECOND / nanos;
    }
  }

  private Time once(String id, Consumer<SsdLane> planning, Tally tally) {
    if (listener.isCancelled()) {
      // Short transfers may end before an initiator asks.
      throw new CommandAbortedException(id + " was cancelled");
    }
    ssds.forEach(planning);
    AtomicReferenceArray<@Nullable TransferReport> reports =
        new AtomicReferenceArray<>(ssds.size());
    List<Runnable> parts =
        IntStream.range(0, ssds.size())
            .<Runnable>mapToObj(i -> () -> reports.set(i, ssds.get(i).run(listener)))
            .toList();
    long start = System.nanoTime();
    WorkScope.rethrow(
        WorkScope.all(work -> Thread.ofPlatform().daemon().start(work), parts, () -> {}));
    long nanos = System.nanoTime() - start;
    tally.begin();
    for (int i = 0; i < ssds.size(); i++) {
      tally.add(Objects.requireNonNull(reports.get(i)));
      ssds.get(i).check(id);
    }
    return new Time(nanos);
  }

  /** What the repetitions that count add up to. */
  private final class Tally {
    private final Histogram latency = TransferListener.newLatencies();
    private int repetitions;
    private long commands;
    private long doorbells;
    private long retries;
    private long recoveries;
    private long commandsNow;
    private long bytesNow;
    private @Nullable TransferReport last;

    void begin() {
      if (repetitions++ == 1) {
        // The first one is not counted.
        latency.reset();
        commands = 0;
        doorbells = 0;
        retries = 0;
        recoveries = 0;
      }
      commandsNow = 0;
      bytesNow = 0;
    }

    void add(TransferReport report) {
      last = report;
      latency.add(report.latency());
      commands += report.commands();
      commandsNow += report.commands();
      bytesNow += report.bytes();
      doorbells += report.sqDoorbells() + report.cqDoorbells();
      retries += report.retries();
      recoveries += report.recoveries();
    }

    long lastCommands() {
      return commandsNow;
    }

    long lastBytes() {
      return bytesNow;
    }

    void describe(Map<String, Object> conditions) {
      TransferReport report = Objects.requireNonNull(last);
      conditions.put("path", report.path());
      conditions.put("initiator", report.initiator());
      conditions.put("placement", report.placement().toString());
      conditions.put("accelerator", accelerator.name());
      conditions.put("ssds", ssds.size());
      conditions.put("range_bytes", rangeBytes);
      conditions.put("queue_pairs", report.queuePairs());
      conditions.put("depth", report.depth());
      conditions.put("threads", report.threads());
      conditions.put("commands", commands);
      conditions.put("doorbells_per_command", (double) doorbells / commands);
      conditions.put("latency_p50_us", micros(50));
      conditions.put("latency_p99_us", micros(99));
      conditions.put("latency_p99.9_us", micros(99.9));
      conditions.put("latency_max_us", latency.getMaxValue() / NANOS_PER_MICRO);
      conditions.put("retries", retries);
      conditions.put("recoveries", recoveries);
      conditions.put("checked_against", known ? "a pattern" : "what the CPU reads");
    }

    private double micros(double percentile) {
      return latency.getValueAtPercentile(percentile) / NANOS_PER_MICRO;
    }
  }

  @Override
  public void close() {
    CloseAll.newestFirst(ssds);
  }
}
