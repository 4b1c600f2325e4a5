package io.gpunvme.tools.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.WorkScope;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.gpu.transfer.TransferReport;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.storage.BlockRun;
import io.gpunvme.tools.ssd.Ssds;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * Reads and writes blocks of SSDs by an initiator, all SSDs at once, and measures the rate. Every
 * block is checked, here and there. Only reads, unless the {@link Mix} says otherwise. For one
 * thread.
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
  private static final double PERCENT = 100;
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
    rangeBytes = Ssds.bytes(runs);
    List<List<BlockRun>> perSsd = Ssds.bySsd(runs);
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
   * @param runs what may be read, and written if a mix says so; at least one; their controllers
   *     stay the caller's
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

  /** Random reads of one block each, as {@link #random(int, Mix, Repetitions)}. */
  public Measurement random(int block, Repetitions repetitions) {
    return random(block, Mix.READS, repetitions);
  }

  /**
   * Random commands of one block each, in the same queue pairs.
   *
   * @param block bytes, a multiple of the SSDs' logical blocks
   * @param mix what is written stays: the caller has {@link io.gpunvme.tools.ssd.BorrowedBlocks
   *     borrowed} the blocks
   * @return commands per second of all SSDs together
   * @throws InvalidRequestException if an SSD has no such block, or is open for reading only
   * @throws BenchException if something else arrived than is there, or was written
   * @throws io.gpunvme.nvme.NvmeException if an SSD fails
   */
  public Measurement random(int block, Mix mix, Repetitions repetitions) {
    ssds.forEach(one -> one.requireBlocksOf(block, mix));
    String id = "random.%s%s.%s".formatted(size(block), suffix(mix), who());
    int commands =
        commandsFor(block, n -> once(id, s -> s.planRandom(block, n, mix), new Tally(mix)));
    Tally tally = new Tally(mix);
    double[] samples =
        repetitions.samples(
            () ->
                once(id, s -> s.planRandom(block, commands, mix), tally)
                    .perSecond(tally.lastCommands()));
    Map<String, Object> conditions = new LinkedHashMap<>();
    conditions.put("block_bytes", block);
    tally.describe(conditions);
    Measurement rate = Measurement.of(id, "commands/s", samples, conditions);
    double bytesPerSecond = rate.median() * block / NANOS_PER_SECOND;
    conditions.put("gb_per_s", bytesPerSecond);
    if (mix.writes()) {
      double reads = mix.readPercent() / PERCENT;
      conditions.put("reads_per_s", rate.median() * reads);
      conditions.put("writes_per_s", rate.median() * (1 - reads));
      conditions.put("read_gb_per_s", bytesPerSecond * reads);
      conditions.put("written_gb_per_s", bytesPerSecond * (1 - reads));
    }
    return rate.under(conditions);
  }

  /**
   * Reads of one logical block of each SSD, always the same: what the queues do where the media do
   * as little as they can.
   *
   * @return commands per second of all SSDs together
   * @throws BenchException if something else arrived than is there
   * @throws io.gpunvme.nvme.NvmeException if an SSD fails
   */
  public Measurement queue(Repetitions repetitions) {
    String id = "queue.ssd." + who();
    Tally tally = new Tally(Mix.READS);
    double[] samples = firsts(id, tally, repetitions, time -> time.perSecond(tally.lastCommands()));
    Map<String, Object> conditions = new LinkedHashMap<>();
    conditions.put("block_bytes", longestBlock());
    tally.describe(conditions);
    return Measurement.of(id, "commands/s", samples, conditions);
  }

  /**
   * The same, one at a time in each queue pair there is.
   *
   * @return nanoseconds; of each repetition the median
   * @throws BenchException if something else arrived than is there
   * @throws io.gpunvme.nvme.NvmeException if an SSD fails
   */
  public Measurement latency(Repetitions repetitions) {
    String id = "queue.ssd.qd1." + who();
    Tally tally = new Tally(Mix.READS);
    double[] samples = firsts(id, tally, repetitions, time -> tally.lastMedianNanos());
    Map<String, Object> conditions = new LinkedHashMap<>();
    tally.describe(conditions);
    return Measurement.of(id, "ns", samples, conditions);
  }

  private double[] firsts(
      String id, Tally tally, Repetitions repetitions, ToDoubleFunction<Time> value) {
    int commands =
        commandsFor(longestBlock(), n -> once(id, s -> s.planFirst(n), new Tally(Mix.READS)));
    return repetitions.samples(
        () -> value.applyAsDouble(once(id, s -> s.planFirst(commands), tally)));
  }

  private int longestBlock() {
    return ssds.stream().mapToInt(SsdLane::blockSize).max().orElseThrow();
  }

  private static String suffix(Mix mix) {
    return mix.writes() ? ".mix" + mix.readPercent() : "";
  }

  /** Reads one block after the other, as {@link #stream(Mix, Repetitions)}. */
  public Measurement stream(Repetitions repetitions) {
    return stream(Mix.READS, repetitions);
  }

  /**
   * One block after the other, by commands as long as the SSDs take.
   *
   * @param mix only reads, or only writes
   * @return 10^9 bytes per second of all SSDs together
   * @throws InvalidRequestException if the mix is another, or an SSD is open for reading only
   * @throws BenchException if something else arrived than is there, or was written
   * @throws io.gpunvme.nvme.NvmeException if an SSD fails
   */
  public Measurement stream(Mix mix, Repetitions repetitions) {
    if (mix.unit() != 1) {
      throw new InvalidRequestException(
          "a stream reads or writes: its mix is 100 or 0, not " + mix.readPercent());
    }
    Direction direction = mix.direction(0);
    long command = ssds.stream().mapToLong(s -> s.initiator().maxTransferBytes()).min().orElse(0);
    String id = "stream.%s%s.%s".formatted(size(command), suffix(mix), who());
    Tally tally = new Tally(mix);
    double[] samples =
        repetitions.samples(
            () ->
                once(id, s -> s.planNext(bytesEach, direction), tally).perSecond(tally.lastBytes())
                    / NANOS_PER_SECOND);
    Map<String, Object> conditions = new LinkedHashMap<>();
    conditions.put("command_bytes", command);
    tally.describe(conditions);
    return Measurement.of(id, "GB/s", samples, conditions);
  }

  /** As many as a repetition has time for: SSDs differ by a factor of a hundred. */
  private int commandsFor(int block, IntFunction<Time> some) {
    int inFlight =
        ssds.stream()
            .mapToInt(s -> s.initiator().queuePairs() * s.initiator().depth())
            .max()
            .orElse(1);
    int most = (int) (bytesEach / block);
    int least = Math.min(Math.max(LEAST_COMMANDS, ROUNDS_OF_QUEUES * inFlight), most);
    Time first = some.apply(least);
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
      tally.add(Objects.requireNonNull(reports.get(i)), ssds.get(i));
      ssds.get(i).check(id);
    }
    return new Time(nanos);
  }

  /** What the repetitions that count add up to. */
  private final class Tally {
    private final Mix mix;
    private final Histogram latency = TransferListener.newLatencies();

    /** Of those that read and that write, in a mix. */
    private final Histogram reads = TransferListener.newLatencies();

    private final Histogram writes = TransferListener.newLatencies();
    private int repetitions;
    private long commands;
    private long doorbells;
    private long retries;
    private long recoveries;
    private long commandsNow;
    private long bytesNow;
    private final Histogram latencyNow = TransferListener.newLatencies();
    private @Nullable TransferReport last;

    Tally(Mix mix) {
      this.mix = mix;
    }

    void begin() {
      if (repetitions++ == 1) {
        // The first one is not counted.
        latency.reset();
        reads.reset();
        writes.reset();
        commands = 0;
        doorbells = 0;
        retries = 0;
        recoveries = 0;
      }
      commandsNow = 0;
      bytesNow = 0;
      latencyNow.reset();
    }

    void add(TransferReport report, SsdLane ssd) {
      if (mix.writes()) {
        ssd.addLatencies(reads, writes);
      }
      last = report;
      latency.add(report.latency());
      latencyNow.add(report.latency());
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

    double lastMedianNanos() {
      return latencyNow.getValueAtPercentile(50);
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
      describe("latency", latency, conditions);
      if (mix.writes()) {
        conditions.put("mix", mix.readPercent());
        conditions.put("read_commands", reads.getTotalCount());
        conditions.put("written_commands", writes.getTotalCount());
        describe("read_latency", reads, conditions);
        describe("write_latency", writes, conditions);
      }
      conditions.put("retries", retries);
      conditions.put("recoveries", recoveries);
      conditions.put("checked_against", checkedAgainst());
    }

    private String checkedAgainst() {
      return known
          ? "a pattern"
          : mix.writes() ? "what the CPU reads, and what was written" : "what the CPU reads";
    }

    private static void describe(String name, Histogram nanos, Map<String, Object> conditions) {
      if (nanos.getTotalCount() > 0) {
        conditions.put(name + "_p50_us", nanos.getValueAtPercentile(50) / NANOS_PER_MICRO);
        conditions.put(name + "_p99_us", nanos.getValueAtPercentile(99) / NANOS_PER_MICRO);
        conditions.put(name + "_p99.9_us", nanos.getValueAtPercentile(99.9) / NANOS_PER_MICRO);
        conditions.put(name + "_max_us", nanos.getMaxValue() / NANOS_PER_MICRO);
      }
    }
  }

  @Override
  public void close() {
    CloseAll.newestFirst(ssds);
  }
}
