package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Table;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.GpuBusAddresses;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.tools.doctor.PeerCheck;
import io.gpunvme.tools.doctor.PeerReport;
import io.gpunvme.tools.doctor.PeerStep;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code gpunvme check-p2p DEVICE}. */
@Command(
    name = "check-p2p",
    description = {
      "Try whether the GPU can drive an SSD.",
      "The SSD's BAR0 is registered with CUDA as I/O memory. Then a kernel reads one block, and",
      "rings the doorbells of a queue pair made for it. Changes no data.",
      "Exit code 0 if it can, 1 if it cannot or there is no GPU."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme check-p2p sim:",
      "  sudo gpunvme check-p2p vfio:0000:01:00.0",
      "  sudo gpunvme check-p2p vfio:0000:01:00.0 --read --json"
    })
final class CheckP2pCommand extends DeviceCommand {
  private static final int INDENT = 2;

  @Option(
      names = "--read",
      description =
          "As the last step, let the GPU load a register. On some machines the root complex does"
              + " not answer such loads, and the link goes down: use it only on a machine without"
              + " other work.")
  private boolean read;

  CheckP2pCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    PeerReport report;
    GpuBusAddresses memory;
    // The GPU first: without one the SSD need not be touched.
    try (GpuAccelerator gpu = GpuAccelerator.open();
        Device device = open()) {
      report = PeerCheck.run(device, gpu, read);
      memory = device.gpuBusAddresses();
    }
    print(() -> printText(report, memory), () -> object(report, memory));
    return report.verdict() == PeerReport.Verdict.GPU_DRIVES_SSD ? ExitCode.OK : ExitCode.FAILURE;
  }

  private void printText(PeerReport report, GpuBusAddresses memory) {
    out().println(report.gpu() + " and " + report.ssd());
    Table steps = new Table(INDENT);
    report.steps().forEach(s -> steps.row(s.outcome(), s.name(), s.detail()));
    steps.print(out());
    out().println();
    out().println("Placements");
    Table placements = new Table(INDENT);
    for (Placement placement : Placement.values()) {
      String reason = report.placements().reason(placement);
      placements.row(placement, reason == null ? "possible" : reason);
    }
    placements.print(out());
    out().println();
    out().println("GPU memory for this SSD: " + memory);
    out().println();
    out().println(report.verdict() + ": " + report.verdict().text());
  }

  private Map<String, Object> object(PeerReport report, GpuBusAddresses memory) {
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
      placements.put(placement.toString(), one);
    }
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("device", device());
    object.put("gpu", report.gpu());
    object.put("result", report.verdict());
    object.put("text", report.verdict().text());
    object.put("steps", steps);
    object.put("placements", placements);
    object.put("gpu_memory", memory.way());
    Map<String, Object> reasons = new LinkedHashMap<>();
    memory.reasons().forEach((way, reason) -> reasons.put(way.toString(), reason));
    object.put("gpu_memory_not", reasons);
    return object;
  }
}
