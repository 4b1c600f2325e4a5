package io.gpunvme.cli;

import io.gpunvme.base.ByteRange;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Progress;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.ShutdownGuard;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.tools.bench.BenchException;
import io.gpunvme.tools.bench.Measurement;
import io.gpunvme.tools.bench.Repetitions;
import io.gpunvme.tools.bench.SsdBench;
import io.gpunvme.tools.demo.RangeDemo;
import io.gpunvme.tools.demo.RangeReport;
import io.gpunvme.tools.doctor.PeerCheck;
import io.gpunvme.tools.doctor.PeerReport;
import io.gpunvme.tools.machine.DiskUse;
import io.gpunvme.tools.machine.DriverBinding;
import io.gpunvme.tools.machine.DriverBinding.Plan;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.MachineFunction;
import io.gpunvme.tools.ssd.Ssds;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.Charset;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code gpunvme try SSD}. */
@Command(
    name = "try",
    description = {
      "Try what an SSD of yours does here, step by step, and put everything back.",
      "What it is and who uses it; bind, after a question; identify; whether the GPU can drive it;"
          + " a",
      "demo and a benchmark, which only read; unbind. An SSD that is bound already stays bound.",
      "Ctrl-C ends it at any step, and the SSD is given back, too. Nothing is ever written to it."
    },
    footer = {
      "",
      "Examples:",
      "  sudo gpunvme try 0000:01:00.0",
      "  sudo gpunvme try 0000:01:00.0 --yes --json",
      "  gpunvme try vfio:0000:01:00.0                an SSD that is bound already",
      "  gpunvme try vfio-user:/tmp/ssd.sock          one of another process"
    })
final class TryCommand extends BaseCommand {
  private static final ByteRange DEMO = new ByteRange(0, 64L << 20);
  private static final int BLOCK = 4096;

  @Parameters(
      index = "0",
      paramLabel = "SSD",
      description = "DDDD:BB:DD.F (gpunvme list shows it), or the address of a device.")
  private String ssd = "";

  @Option(
      names = {"-y", "--yes"},
      description = "Bind without a question.")
  private boolean yes;

  @Option(
      names = "--seconds",
      paramLabel = "S",
      converter = Converters.Count.class,
      description = "Time for each measurement (1).")
  private int seconds = 1;

  @ArgGroup private final BindTarget target = new BindTarget();

  @Mixin private final InitiatorOption initiator = new InitiatorOption();

  @Mixin private final MachineOption machine = new MachineOption();

  private final List<Map<String, Object>> steps = new ArrayList<>();

  /** The process is told to end. */
  private volatile boolean cancelled;

  private boolean failed;

  TryCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    PciAddress function = PciAddress.find(ssd).orElse(null);
    try (CancelledAtExit exit = new CancelledAtExit()) {
      exit.now(() -> cancelled = true);
      if (function == null) {
        tryDevice(ssd);
      } else {
        tryFunction(function);
      }
    }
    if (json()) {
      Map<String, Object> object = new LinkedHashMap<>();
      object.put("ssd", ssd);
      object.put("succeeded", !failed);
      object.put("steps", steps);
      print(() -> {}, () -> object);
    }
    return failed ? ExitCode.FAILURE : ExitCode.OK;
  }

  // ---- steps

  /** What a step does. */
  private interface Work {
    /** Returns what is told of it. */
    String run(Map<String, Object> details) throws IOException;
  }

  /** It was not done, for a reason that is no failure. */
  private static final class SkippedException extends RuntimeException {
    private static final long serialVersionUID = 1;

    SkippedException(String why) {
      super(why);
    }
  }

  /** Does a step unless one before it failed; whether it was done. */
  private boolean step(String name, Work work) {
    if (failed) {
      return false;
    }
    return always(name, work);
  }

  private boolean always(String name, Work work) {
    Map<String, Object> details = new LinkedHashMap<>();
    details.put("step", name);
    details.put("outcome", "done");
    String text;
    try {
      text = work.run(details);
    } catch (SkippedException e) {
      details.put("outcome", "skipped");
      text = String.valueOf(e.getMessage());
    } catch (IOException
        | NvmeException
        | InvalidRequestException
        | StorageException
        | CudaException
        | CudaNotFoundException
        | BenchException e) {
      failed = true;
      details.put("outcome", "failed");
      text = cancelled ? "interrupted" : String.valueOf(e.getMessage());
    }
    details.put("text", text);
    steps.add(details);
    Object outcome = details.get("outcome");
    if (!json()) {
      out().printf("%-8s %-10s %s%n", outcome, name, text);
      // Whoever watches through a pipe sees each step when it is over.
      out().flush();
    } else if (failed && outcome.equals("failed")) {
      streams().err().println("gpunvme try: " + name + ": " + text);
    }
    return outcome.equals("done");
  }

  // ---- the SSD of a PCI address

  private void tryFunction(PciAddress address) {
    Machine picture = machine.read();
    if (!step("look", details -> look(picture, address, details))) {
      return;
    }
    DriverBinding binding = machine.binding();
    Plan plan = plan(binding, picture, address);
    if (plan == null) {
      return;
    }
    String device = target.device(address, picture.function(address).group() != null);
    if (plan.writes().isEmpty()) {
      step("bind", _ -> "it is bound already, and stays so");
      tryDevice(device);
    } else if (isWanted(address)) {
      // What is bound is given back by this thread, also if the process is told to end.
      try (ShutdownGuard.Delay _ = ShutdownGuard.delay()) {
        Ending.leaves("gpunvme unbind " + address + " repairs any state");
        try {
          if (step("bind", details -> bind(binding, picture, plan, details))) {
            tryDevice(device);
          }
        } finally {
          always("unbind", details -> unbind(binding, address, details));
        }
      }
    }
  }

  private static String look(Machine picture, PciAddress address, Map<String, Object> details) {
    MachineFunction function = picture.function(address);
    if (!function.nvme()) {
      throw new InvalidRequestException(address + " is no NVMe controller (gpunvme list)");
    }
    List<String> uses = DiskUse.of(picture, address);
    details.put("model", function.model());
    details.put("driver", function.driver());
    details.put("in_use", uses);
    if (!uses.isEmpty()) {
      throw new InvalidRequestException(
          "it is in use: %s; gpunvme leaves it alone".formatted(String.join(", ", uses)));
    }
    return "%s, PCIe link %s, %s; nobody uses it"
        .formatted(
            function.model().isEmpty() ? "an NVMe controller " + function.id() : function.model(),
            function.link(),
            function.driver().isEmpty() ? "no driver" : "driver " + function.driver());
  }

  /** Null if it cannot be bound. */
  private @Nullable Plan plan(DriverBinding binding, Machine picture, PciAddress address) {
    try {
      return target.plan(binding, picture, address);
    } catch (InvalidRequestException e) {
      step(
          "bind",
          _ -> {
            throw e;
          });
      return null;
    }
  }

  private String bind(
      DriverBinding binding, Machine picture, Plan plan, Map<String, Object> details)
      throws IOException {
    goOn();
    details.put("writes", plan.writes().stream().map(Object::toString).toList());
    binding.bind(picture, plan);
    return plan.target().isEmpty() || plan.target().equals(DriverBinding.NO_DRIVER)
        ? "no driver has it now"
        : plan.target() + " has it now";
  }

  private boolean isWanted(PciAddress address) {
    if (yes) {
      return true;
    }
    if (json() || streams().columns().getAsInt() == 0) {
      throw new UsageException(
          "nobody can be asked here: add --yes to take "
              + address
              + " from the kernel for a while");
    }
    streams()
        .err()
        .print(
            "Take %s from the kernel? Its disks disappear until the last step. [y/N] "
                .formatted(address));
    streams().err().flush();
    return step(
        "ask",
        _ -> {
          String answer =
              new BufferedReader(new InputStreamReader(System.in, Charset.defaultCharset()))
                  .readLine();
          if (answer == null || !answer.strip().toLowerCase(Locale.ROOT).startsWith("y")) {
            throw new SkippedException("not wanted; nothing was changed");
          }
          return "wanted";
        });
  }

  private String unbind(DriverBinding binding, PciAddress address, Map<String, Object> details)
      throws IOException {
    Machine now = machine.read();
    Plan plan = binding.unbind(now, address);
    binding.unbind(now, plan);
    String driver = binding.currentDriver(address);
    details.put("driver", driver);
    Ending.leaves(address + " is given back");
    return driver.isEmpty() ? "no driver has it, as before" : driver + " has it again";
  }

  // ---- a device that can be opened

  private void tryDevice(String device) {
    step("identify", details -> identify(device, details));
    InitiatorKind[] who = {InitiatorKind.CPU};
    step("check-p2p", details -> checkPeer(device, who, details));
    step("demo", details -> demo(device, who[0], details));
    step("bench", details -> bench(device, who[0], details));
  }

  private void goOn() {
    if (cancelled) {
      throw new InvalidRequestException("interrupted");
    }
  }

  private String identify(String device, Map<String, Object> details) {
    goOn();
    details.put("device", device);
    try (Device open = Device.open(device, ControllerOptions.defaults())) {
      NvmeController controller = open.controller();
      String model = controller.identify().getText(IdentifyController.MN).strip();
      long bytes = controller.namespace(1).bytes();
      details.put("model", model);
      details.put("bytes", bytes);
      details.put("max_queue_pairs", controller.maxQueuePairs());
      details.put("max_transfer_bytes", controller.maxTransferBytes());
      return "%s is %s: %s, %d queue pairs, %s a command"
          .formatted(
              device,
              model,
              Sizes.format(bytes),
              controller.maxQueuePairs(),
              Sizes.format(controller.maxTransferBytes()));
    }
  }

  private String checkPeer(String device, InitiatorKind[] who, Map<String, Object> details) {
    goOn();
    if (initiator.kind() == InitiatorKind.CPU) {
      throw new SkippedException("the CPU is to be the initiator");
    }
    Duration look = Duration.ofSeconds(seconds);
    try (GpuAccelerator gpu = GpuAccelerator.open();
        Progress progress = Progress.on(streams());
        Device open = Device.open(device, ControllerOptions.defaults())) {
      progress.begin("look", look.toNanos(), Progress.Unit.NANOS);
      PeerReport report = PeerCheck.run(open, gpu, false, look, progress::moved);
      details.put("gpu", report.gpu());
      details.put("result", report.verdict().toString());
      if (report.verdict() == PeerReport.Verdict.GPU_DRIVES_SSD) {
        who[0] = InitiatorKind.GPU;
      } else if (initiator.kind() == InitiatorKind.GPU) {
        throw new InvalidRequestException(report.verdict().text());
      }
      return report.gpu() + ": " + report.verdict().text();
    } catch (CudaNotFoundException | CudaException e) {
      if (initiator.kind() == InitiatorKind.GPU) {
        throw e;
      }
      throw new SkippedException("no GPU, so the CPU is the initiator (gpunvme doctor says more)");
    }
  }

  private String demo(String device, InitiatorKind who, Map<String, Object> details)
      throws IOException {
    goOn();
    InitiatorOptions options = InitiatorOptions.defaults().with(who, null);
    try (Progress progress = Progress.on(streams());
        Ssds open = Ssds.open(device, ControllerOptions.defaults(), "", 1)) {
      ByteRange range = open.size() < DEMO.bytes() ? null : DEMO;
      RangeReport report =
          RangeDemo.run(open, range, options, new ShownDemo(progress, () -> cancelled));
      details.put("verified", report.verified());
      details.put("bytes", report.bytes());
      details.putAll(Descriptions.transfer(report.get()));
      RangeReport.Difference difference = report.difference();
      if (difference != null) {
        throw new BenchException(
            "%s and the CPU read different data, first in the MiB from LBA %d on"
                .formatted(report.get().initiator(), difference.lba()));
      }
      return "the %s read %s into %s, %.2f GB/s; the CPU read the same"
          .formatted(
              report.get().initiator(),
              Sizes.format(report.bytes()),
              report.accelerator(),
              report.get().gigabytesPerSecond());
    }
  }

  private String bench(String device, InitiatorKind who, Map<String, Object> details) {
    goOn();
    InitiatorOptions options = InitiatorOptions.defaults().with(who, null);
    Duration time = Duration.ofSeconds(seconds);
    try (Progress progress = Progress.on(streams());
        Ssds open = Ssds.open(device, ControllerOptions.defaults(), "", 1);
        Accelerator accelerator = options.accelerator().accelerator();
        SsdBench bench = SsdBench.open(open.blocks(null), accelerator, options, () -> cancelled)) {
      int block = Math.max(BLOCK, open.blocks(null).getFirst().namespace().blockSize());
      Repetitions repetitions = Repetitions.lasting(time).telling(progress::moved);
      progress.begin("random", time.toNanos(), Progress.Unit.NANOS);
      Measurement random = bench.random(block, repetitions);
      progress.begin("stream", time.toNanos(), Progress.Unit.NANOS);
      Measurement stream = bench.stream(repetitions);
      details.put("initiator", random.conditions().get("initiator"));
      details.put("commands_per_s", random.median());
      details.put("latency_p50_us", random.conditions().get("latency_p50_us"));
      details.put("latency_p99_us", random.conditions().get("latency_p99_us"));
      details.put("gb_per_s", stream.median());
      return "random %s: %s %s, median latency %s us; long reads: %.2f GB/s"
          .formatted(
              Sizes.format(block),
              NumberTexts.number(random, random.median()),
              NumberTexts.unit(random),
              NumberTexts.text(Objects.requireNonNull(random.conditions().get("latency_p50_us"))),
              stream.median());
    }
  }
}
