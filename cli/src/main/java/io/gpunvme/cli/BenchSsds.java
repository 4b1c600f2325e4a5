package io.gpunvme.cli;

import io.gpunvme.base.ByteRange;
import io.gpunvme.cli.BenchCommand.Benchmark;
import io.gpunvme.cli.output.Progress;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.storage.BlockRun;
import io.gpunvme.tools.bench.Measurement;
import io.gpunvme.tools.bench.Mix;
import io.gpunvme.tools.bench.Repetitions;
import io.gpunvme.tools.bench.SsdBench;
import io.gpunvme.tools.bench.SsdLayers;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.MachineFunction;
import io.gpunvme.tools.machine.PciLink;
import io.gpunvme.tools.ssd.BorrowListener;
import io.gpunvme.tools.ssd.BorrowedBlocks;
import io.gpunvme.tools.ssd.SsdFacts;
import io.gpunvme.tools.ssd.SsdState;
import io.gpunvme.tools.ssd.Ssds;
import java.io.IOException;
import java.io.PrintStream;
import java.math.BigInteger;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The part of {@code bench} that measures SSDs of the user's. */
final class BenchSsds {
  private static final long BLOCK = 4096;

  @Option(
      names = "--device",
      paramLabel = "ADDRESS",
      description =
          "Measure SSDs of yours, which are only read without --mix. vfio:, kmod:, sysfs:, "
              + "vfio-user:, sim:, stripe:…, replica:…, a partition or a file on one of them.")
  private @Nullable String address;

  @Option(
      names = "--nsid",
      paramLabel = "N",
      converter = Converters.Nsid.class,
      description = "With --device: the namespace of each SSD (1).")
  private @Nullable Integer nsid;

  @Option(
      names = "--range",
      paramLabel = "RANGE",
      converter = Converters.Range.class,
      description = "With --device: use only these bytes, OFFSET+SIZE or SIZE (all).")
  private @Nullable ByteRange range;

  @Option(
      names = "--mix",
      paramLabel = "PERCENT",
      converter = Converters.Whole.class,
      description = {
        "With --device: so many of 100 commands read, the others write (100; stream: 100 or 0).",
        "What was in --range is kept in a file meanwhile, and put back, also after Ctrl-C. Needs "
            + "--range and --allow-write."
      })
  private @Nullable Long mix;

  @Option(
      names = "--allow-write",
      description = "Allow --mix to overwrite data of an SSD for a while.")
  private boolean allowWrite;

  @Option(
      names = "--blocks",
      paramLabel = "LIST",
      split = ",",
      converter = Converters.Size.class,
      description = "With --device: sizes of random blocks, e.g. 512,4KiB,64KiB (4KiB).")
  private @Nullable List<Long> blocks;

  @Mixin private final DriverOptions driver = new DriverOptions();

  /** The process is told to end. */
  private volatile boolean cancelled;

  /** Whether there is a device. */
  boolean wanted() {
    return address != null;
  }

  /** Refuses options that are without effect. */
  void requireSense(Benchmark what) {
    boolean any = nsid != null || range != null || blocks != null || driver.given();
    if (address == null && (any || mix != null || allowWrite)) {
      throw new UsageException(
          "--nsid, --range, --blocks, --mix, --allow-write, --faults, --timeout and --max-transfer"
              + " need --device");
    }
    if (what != Benchmark.RANDOM && blocks != null) {
      throw new UsageException("--blocks is for bench random");
    }
    requireSenseOfMix(what);
  }

  private void requireSenseOfMix(Benchmark what) {
    Long percent = mix;
    if (percent != null && (percent < 0 || percent > 100)) {
      throw new UsageException("--mix is a percentage of reads, from 0 to 100");
    }
    if (!mix().writes()) {
      if (allowWrite) {
        throw new UsageException("--allow-write is for a --mix below 100, which writes");
      }
      return;
    }
    if (what != Benchmark.RANDOM && what != Benchmark.STREAM) {
      throw new UsageException("--mix is for bench random and stream: bench " + what + " reads");
    }
    if (what == Benchmark.STREAM && mix().readPercent() != 0) {
      throw new UsageException("bench stream reads (--mix 100) or writes (--mix 0)");
    }
    if (range == null) {
      throw new UsageException(
          "--mix %d overwrites blocks for a while: name those that it may use (--range OFFSET+SIZE)"
              .formatted(percent));
    }
    if (!allowWrite) {
      throw new UsageException(
          "--mix %d overwrites %s of %s for a while; add --allow-write to allow it"
              .formatted(percent, range, address));
    }
  }

  private Mix mix() {
    return mix == null ? Mix.READS : new Mix(mix.intValue());
  }

  /**
   * What was measured.
   *
   * @param accelerator whose memory the data went to
   * @param reason why it was this one
   * @param results each beside what the SSDs' links carry, where that is known
   * @param ssds what is known of them
   * @param gpuLink of the GPU, if it is one
   * @param restored what was overwritten, and put back; null: nothing was written
   */
  record Outcome(
      String accelerator,
      String reason,
      List<Measurement> results,
      List<SsdFacts> ssds,
      PciLink gpuLink,
      @Nullable ByteRange restored) {}

  /** How it is measured. */
  private record How(Benchmark what, InitiatorOptions options, Duration time, Progress progress) {
    Repetitions repetitions() {
      return Repetitions.lasting(time).telling(progress::moved);
    }

    void begin(String task) {
      begin(task, 1);
    }

    /** Of several measurements. */
    void begin(String task, int measurements) {
      progress.begin(task, measurements * time.toNanos(), Progress.Unit.NANOS);
    }
  }

  /** Measures, each for a time, and shows how that gets on. */
  Outcome run(Benchmark what, InitiatorOptions options, Duration time, Progress progress)
      throws IOException {
    How how = new How(what, options, time, progress);
    if (what == Benchmark.LAYERS) {
      return layers(how);
    }
    ByteRange borrowed = range;
    if (!mix().writes() || borrowed == null) {
      return run(how, null);
    }
    return Borrowing.run(
        "bench",
        String.valueOf(address),
        borrowed,
        () -> cancelled = true,
        folder -> run(how, folder));
  }

  /**
   * @param folder takes what is overwritten; null: nothing is
   */
  private Outcome run(How how, @Nullable Path folder) throws IOException {
    Accelerators.Choice choice = how.options.accelerator();
    try (Accelerator accelerator = choice.accelerator();
        Ssds ssds =
            Ssds.open(
                String.valueOf(address),
                driver.controller(folder != null),
                driver.faults(),
                nsid())) {
      List<BlockRun> runs =
          folder == null ? ssds.blocks(range) : ssds.blocksToWrite(Objects.requireNonNull(range));
      return between(
          choice,
          runs,
          folder == null ? null : range,
          () ->
              folder == null
                  ? measure(how, runs, accelerator)
                  : BorrowedBlocks.borrow(runs, folder, shown(how.progress))
                      .during(() -> measure(how, runs, accelerator)));
    }
  }

  /** The SSDs are opened twice: by the CPU, which looks what is there, and for the accelerator. */
  private Outcome layers(How how) throws IOException {
    Accelerators.Choice choice = how.options.accelerator();
    String device = String.valueOf(address);
    ControllerOptions reading = driver.controller(false);
    try (Accelerator accelerator = choice.accelerator()) {
      SsdLayers layers;
      try (Ssds ssds = Ssds.open(device, reading, "", nsid())) {
        layers = SsdLayers.look(ssds, range, accelerator);
      }
      try (Ssds ssds =
          Ssds.open(device, reading, driver.faults(), nsid(), accelerator, how.options)) {
        how.begin("layers", SsdLayers.MEASUREMENTS);
        return between(
            choice,
            ssds.blocks(range),
            null,
            () -> layers.measure(ssds, how.options, how.repetitions()));
      }
    }
  }

  private int nsid() {
    return nsid == null ? 1 : nsid;
  }

  /** What measures. */
  private interface Measuring {
    List<Measurement> run() throws IOException;
  }

  /** Measures, and looks at the SSDs before and after. */
  private static Outcome between(
      Accelerators.Choice choice,
      List<BlockRun> runs,
      @Nullable ByteRange restored,
      Measuring measuring)
      throws IOException {
    List<NvmeController> controllers = Ssds.controllers(runs);
    List<SsdState> before = controllers.stream().map(SsdState::read).toList();
    List<Measurement> results = measuring.run();
    Machine machine = Machine.read(HostPaths.host());
    List<SsdFacts> facts = new ArrayList<>();
    for (int i = 0; i < controllers.size(); i++) {
      facts.add(SsdFacts.of(controllers.get(i), machine, before.get(i)));
    }
    return new Outcome(
        choice.accelerator().name(),
        choice.reason(),
        results.stream().map(m -> besideLinks(m, facts)).toList(),
        facts,
        gpuLink(choice.accelerator(), machine),
        restored);
  }

  private List<Measurement> measure(How how, List<BlockRun> runs, Accelerator accelerator) {
    List<Measurement> results = new ArrayList<>();
    try (SsdBench bench = SsdBench.open(runs, accelerator, how.options, () -> cancelled)) {
      switch (how.what) {
        case RANDOM -> {
          for (long block : blocks(runs)) {
            how.begin("random " + Sizes.format(block));
            int bytes = (int) Math.min(block, Integer.MAX_VALUE);
            results.add(bench.random(bytes, mix(), how.repetitions()));
          }
        }
        case QUEUE -> {
          how.begin("queue");
          results.add(bench.queue(how.repetitions()));
        }
        default -> {
          how.begin("stream");
          results.add(bench.stream(mix(), how.repetitions()));
        }
      }
    }
    if (how.what == Benchmark.QUEUE) {
      InitiatorOptions one = how.options.with(1, 1, 0);
      try (SsdBench bench = SsdBench.open(runs, accelerator, one, () -> cancelled)) {
        how.begin("one at a time");
        results.add(bench.latency(how.repetitions()));
      }
    }
    return results;
  }

  private BorrowListener shown(Progress progress) {
    return new BorrowListener() {
      @Override
      public void begin(Step step, long bytes) {
        progress.begin(step == Step.SAVE ? "keep what is there" : "put it back", bytes);
      }

      @Override
      public void moved(long bytes) {
        progress.moved(bytes);
      }

      @Override
      public boolean isCancelled() {
        return cancelled;
      }
    };
  }

  private List<Long> blocks(List<BlockRun> runs) {
    List<Long> given = blocks;
    if (given != null) {
      return given;
    }
    int logical = runs.stream().mapToInt(r -> r.namespace().blockSize()).max().orElse(0);
    return List.of(Math.max(BLOCK, logical));
  }

  private static Measurement besideLinks(Measurement m, List<SsdFacts> ssds) {
    if (!m.unit().equals("commands/s") && !m.unit().equals("GB/s")) {
      return m;
    }
    double all = 0;
    for (SsdFacts one : ssds) {
      if (!one.link().known()) {
        return m;
      }
      all += one.link().gigabytesPerSecond();
    }
    // A link carries both directions at once: the one that has more to do is the limit.
    Object percent = m.conditions().get("mix");
    double more = percent instanceof Integer reads ? Math.max(reads, 100 - reads) / 100.0 : 1;
    Object block = m.conditions().get("block_bytes");
    double limit = (block instanceof Integer bytes ? all * 1e9 / bytes : all) / more;
    return m.limitedBy(ssds.size() == 1 ? "the SSD's PCIe link" : "the SSDs' PCIe links", limit);
  }

  private static PciLink gpuLink(Accelerator accelerator, Machine machine) {
    return accelerator
        .cuda()
        .flatMap(gpu -> PciAddress.find(gpu.context().device().pciBusId()))
        .flatMap(machine::find)
        .map(MachineFunction::link)
        .orElse(PciLink.UNKNOWN);
  }

  // ---- output

  static void print(Outcome outcome, PrintStream out) {
    for (SsdFacts one : outcome.ssds) {
      out.println();
      ByteRange restored = outcome.restored;
      out.println(
          "%s  %s, %s"
              .formatted(
                  one.name(),
                  one.model(),
                  restored == null
                      ? "nothing was written"
                      : "what was in " + restored + " is there again"));
      Table table =
          new Table(2)
              .row("PCIe link", text(one.link()))
              .row("longest transfer", Sizes.format(one.maxTransferBytes()))
              .row("temperature", celsius(one.before()) + " to " + celsius(one.after()))
              .row("read commands", "+" + reads(one));
      if (restored != null) {
        table.row("write commands", "+" + writes(one));
      }
      table
          .row("media errors", "+" + mediaErrors(one))
          .row("error log entries", "+" + errors(one))
          .print(out);
    }
    if (outcome.gpuLink.known()) {
      out.println();
      out.println(outcome.accelerator + "  PCIe link " + text(outcome.gpuLink));
    }
  }

  private static String text(PciLink link) {
    return link.known()
        ? "%s, %s GB/s"
            .formatted(link, String.format(Locale.ROOT, "%.2f", link.gigabytesPerSecond()))
        : "-";
  }

  private static String celsius(SsdState state) {
    OptionalInt degrees = state.celsius();
    return degrees.isPresent() ? degrees.getAsInt() + " C" : "-";
  }

  private static BigInteger reads(SsdFacts ssd) {
    return ssd.after().readCommands().subtract(ssd.before().readCommands());
  }

  private static BigInteger writes(SsdFacts ssd) {
    return ssd.after().writeCommands().subtract(ssd.before().writeCommands());
  }

  private static BigInteger mediaErrors(SsdFacts ssd) {
    return ssd.after().mediaErrors().subtract(ssd.before().mediaErrors());
  }

  private static BigInteger errors(SsdFacts ssd) {
    return ssd.after().errorLogEntries().subtract(ssd.before().errorLogEntries());
  }

  static void describe(Outcome outcome, Map<String, Object> object) {
    object.put("accelerator", outcome.accelerator);
    object.put("accelerator_reason", outcome.reason);
    object.put("gpu_link", link(outcome.gpuLink));
    object.put("restored", outcome.restored == null ? null : true);
    object.put("ssds", outcome.ssds.stream().map(BenchSsds::object).toList());
  }

  private static Map<String, Object> object(SsdFacts ssd) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("device", ssd.name());
    one.put("model", ssd.model());
    one.put("max_transfer_bytes", ssd.maxTransferBytes());
    one.put("link", link(ssd.link()));
    one.put("celsius_before", orNull(ssd.before().celsius()));
    one.put("celsius_after", orNull(ssd.after().celsius()));
    one.put("read_commands", reads(ssd));
    one.put("write_commands", writes(ssd));
    one.put("media_errors", mediaErrors(ssd));
    one.put("error_log_entries", errors(ssd));
    return one;
  }

  private static @Nullable Integer orNull(OptionalInt value) {
    return value.isPresent() ? value.getAsInt() : null;
  }

  private static @Nullable Map<String, Object> link(PciLink link) {
    if (!link.known()) {
      return null;
    }
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("gt_per_s", link.speed());
    one.put("lanes", link.width());
    one.put("max_gt_per_s", link.maxSpeed());
    one.put("max_lanes", link.maxWidth());
    one.put("gb_per_s", link.gigabytesPerSecond());
    return one;
  }
}
