package io.gpunvme.cli;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Progress;
import io.gpunvme.cli.output.Table;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.device.GpuBusAddresses;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.tools.doctor.ArrivalCount;
import io.gpunvme.tools.doctor.PeerCheck;
import io.gpunvme.tools.doctor.PeerReport;
import io.gpunvme.tools.doctor.PeerStep;
import io.gpunvme.tools.ssd.Ssds;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code gpunvme check-p2p DEVICE}. */
@Command(
    name = "check-p2p",
    description = {
      "Try whether the GPU can drive an SSD, or each SSD behind an address.",
      "The SSD's BAR0 is registered with CUDA as I/O memory. Then a kernel reads one block, and",
      "rings the doorbells of a queue pair made for it. If the SSD reaches GPU memory, kernels"
          + " then",
      "look how often the last 16 bytes of data there are later than its completion. Changes no"
          + " data.",
      "Exit code 0 if it can drive all of them, 1 if it cannot, if data is late where gpunvme has"
          + " the",
      "completions, or if there is no GPU."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme check-p2p sim:",
      "  sudo gpunvme check-p2p vfio:0000:01:00.0",
      "  sudo gpunvme check-p2p vfio:0000:01:00.0 --read --json",
      "  sudo gpunvme check-p2p kmod:0000:01:00.0 --seconds 600",
      "  sudo gpunvme check-p2p stripe:vfio:0000:01:00.0,vfio:0000:02:00.0"
    })
final class CheckP2pCommand extends BaseCommand {
  private static final int INDENT = 2;
  private static final double NANOS_PER_MICRO = 1e3;

  @Parameters(
      index = "0",
      paramLabel = "DEVICE",
      description =
          "vfio:, kmod:, sysfs:, vfio-user: or sim:, or the SSDs behind stripe:…, replica:…, a"
              + " partition or a file on one.")
  private String device = "";

  @Option(
      names = "--read",
      description =
          "As the last step, let the GPU load a register. On some machines the root complex does"
              + " not answer such loads, and the link goes down: use it only on a machine without"
              + " other work.")
  private boolean read;

  @Option(
      names = "--seconds",
      paramLabel = "S",
      converter = Converters.Count.class,
      description =
          "How long to look, at each SSD, for data that is later than its completion (1).")
  private int seconds = 1;

  @Mixin private final DriverOptions driver = new DriverOptions();

  CheckP2pCommand(OutputStreams streams) {
    super(streams);
  }

  /** What was found out about one SSD. */
  private record Checked(DeviceAddress device, PeerReport report, GpuBusAddresses memory) {
    boolean works() {
      return report.verdict() == PeerReport.Verdict.GPU_DRIVES_SSD;
    }
  }

  @Override
  int run() throws IOException {
    StorageAddress address = StorageAddress.parse(device);
    Ssds.requireSsd(address);
    List<DeviceAddress> ssds = each(address.devices());
    String faults = driver.faults();
    if (ssds.size() > 1 && !faults.isEmpty()) {
      throw new UsageException("--faults is for one embedded SSD");
    }
    List<Checked> all = new ArrayList<>();
    Map<DeviceAddress, RuntimeException> failures = new LinkedHashMap<>();
    // The GPU first: without one no SSD need be touched.
    Duration look = Duration.ofSeconds(seconds);
    try (GpuAccelerator gpu = GpuAccelerator.open();
        Progress progress = Progress.on(streams())) {
      for (DeviceAddress ssd : ssds) {
        progress.begin("look", look.toNanos(), Progress.Unit.NANOS);
        try (Device open = Device.open(ssd, driver.controller(false), faults)) {
          PeerReport report = PeerCheck.run(open, gpu, read, look, progress::moved);
          all.add(new Checked(ssd, report, open.gpuBusAddresses()));
        } catch (InvalidRequestException | NvmeException e) {
          failures.put(ssd, e);
        }
      }
    }
    if (all.isEmpty()) {
      throw failures.values().iterator().next();
    }
    boolean works = failures.isEmpty() && all.stream().allMatch(Checked::works);
    print(() -> printText(all, failures), () -> object(all, failures, works));
    return works ? ExitCode.OK : ExitCode.FAILURE;
  }

  /** A set may have two partitions of one SSD. */
  private static List<DeviceAddress> each(List<DeviceAddress> all) {
    Map<String, DeviceAddress> each = new LinkedHashMap<>();
    all.forEach(one -> each.putIfAbsent(one.toString(), one));
    return List.copyOf(each.values());
  }

  private void printText(List<Checked> all, Map<DeviceAddress, RuntimeException> failures) {
    for (Checked one : all) {
      if (one != all.getFirst()) {
        out().println();
      }
      printText(one);
    }
    failures.forEach(
        (ssd, failure) -> {
          out().println();
          out().println(ssd + " was not tried: " + failure.getMessage());
        });
  }

  private void printText(Checked one) {
    PeerReport report = one.report;
    out().println(report.gpu() + " and " + report.ssd());
    Table steps = new Table(INDENT);
    report.steps().forEach(s -> steps.row(s.outcome(), s.name(), s.detail()));
    steps.print(out());
    out().println();
    out().println("Placements");
    Table placements = new Table(INDENT);
    for (Placement placement : Placement.values()) {
      String reason = report.placements().reason(placement);
      placements.row(
          placement,
          reason == null ? "possible; " + report.placements().completions(placement) : reason);
    }
    placements.print(out());
    out().println();
    out().println("GPU memory for this SSD: " + one.memory);
    out().println();
    out().println(report.verdict() + ": " + report.verdict().text());
  }

  private Map<String, Object> object(
      List<Checked> all, Map<DeviceAddress, RuntimeException> failures, boolean works) {
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("device", device);
    object.put("gpu", all.getFirst().report.gpu());
    object.put("gpu_drives_all", works);
    List<Object> ssds = new ArrayList<>(all.stream().map(CheckP2pCommand::object).toList());
    failures.forEach(
        (ssd, failure) ->
            ssds.add(Map.of("device", ssd.toString(), "error", "" + failure.getMessage())));
    object.put("ssds", ssds);
    return object;
  }

  private static Map<String, Object> object(Checked ssd) {
    PeerReport report = ssd.report;
    List<Object> steps = new ArrayList<>();
    for (PeerStep step : report.steps()) {
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("step", step.name());
      one.put("outcome", step.outcome());
      one.put("detail", step.detail());
      steps.add(one);
    }
    Map<String, Object> placements = new LinkedHashMap<>();
    for (Placement placement : Placement.values()) {
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("possible", report.placements().possible(placement));
      one.put("reason", report.placements().reason(placement));
      one.put("completions", report.placements().completions(placement).toString());
      placements.put(placement.toString(), one);
    }
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("device", ssd.device.toString());
    object.put("result", report.verdict());
    object.put("text", report.verdict().text());
    object.put("steps", steps);
    object.put("placements", placements);
    object.put("arrivals", report.arrivals().stream().map(CheckP2pCommand::object).toList());
    object.put("gpu_memory", ssd.memory.way());
    Map<String, Object> reasons = new LinkedHashMap<>();
    ssd.memory.reasons().forEach((way, reason) -> reasons.put(way.toString(), reason));
    object.put("gpu_memory_not", reasons);
    return object;
  }

  private static Map<String, Object> object(ArrivalCount count) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("completions", count.hostCompletions() ? "host" : "gpu");
    one.put("used", count.used());
    one.put("bytes", count.bytes());
    one.put("reads", count.reads());
    one.put("late", count.late());
    one.put("latest_us", count.longestNanos() / NANOS_PER_MICRO);
    return one;
  }
}
