package io.gpunvme.cli;

import io.gpunvme.base.ByteSize;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.tools.doctor.CudaView;
import io.gpunvme.tools.doctor.PairPlacements;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.topology.NvLinks;
import io.gpunvme.tools.topology.Topology;
import io.gpunvme.tools.topology.TopologySvg;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code gpunvme topology}. */
@Command(
    name = "topology",
    description = {
      "Show how GPUs and SSDs are connected, what each pair can do, and what to put where.",
      "Only looks: opens no device, measures nothing. Rates are what the links carry in one",
      "direction before packet headers; data gets 85 to 90 %% of that."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme topology",
      "  gpunvme topology --svg machine.svg",
      "  gpunvme topology --svg - | display",
      "  gpunvme topology --request 64KiB,2MiB",
      "  sudo gpunvme topology --json",
      "",
      "As root it also sees ACS, which only root may read. Exit codes: 0 done (also on a machine",
      "without GPUs and SSDs), 1 the picture cannot be written, 2 wrong usage (also a folder that"
          + " is",
      "not there)."
    })
final class TopologyCommand extends BaseCommand {
  private static final String STANDARD_OUTPUT = "-";

  @Option(
      names = "--svg",
      paramLabel = "FILE",
      description = "Draw it as SVG into FILE, whole or not at all; - draws on standard output.")
  private @Nullable String svg;

  @Option(
      names = "--all",
      description = "Show every pair, also those of SSDs that are nearer to another GPU.")
  private boolean all;

  @Option(
      names = "--request",
      paramLabel = "SIZE",
      split = ",",
      description = "Lengths of requests to tell stripe units for (4KiB,256KiB,1MiB,16MiB).")
  private List<String> requests = new ArrayList<>();

  @Mixin private final MachineOption machine = new MachineOption();

  @Option(names = "--no-cuda", hidden = true, description = "Ask neither CUDA nor NVML.")
  private boolean noCuda;

  TopologyCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    boolean drawn = STANDARD_OUTPUT.equals(svg);
    if (drawn && json()) {
      throw new UsageException("--svg - and --json both want standard output: name a file");
    }
    Machine picture = machine.read();
    Topology topology =
        Topology.of(
            picture,
            noCuda ? NvLinks.unknown("not asked") : NvLinks.look(),
            noCuda ? null : new PairPlacements(picture, CudaView.look()),
            requests.isEmpty() ? Topology.REQUESTS : lengths());
    if (drawn) {
      out().print(TopologySvg.of(topology));
      out().flush();
      return ExitCode.OK;
    }
    if (svg != null) {
      write(Path.of(svg), TopologySvg.of(topology));
    }
    TopologyListing listing = new TopologyListing(topology, all);
    print(() -> listing.print(out()), () -> TopologyJson.of(topology));
    return ExitCode.OK;
  }

  private List<Long> lengths() {
    List<Long> lengths = new ArrayList<>();
    for (String request : requests) {
      long bytes = ByteSize.parse(request);
      if (bytes == 0) {
        throw new UsageException("--request " + request + ": a request has at least one byte");
      }
      lengths.add(bytes);
    }
    return lengths;
  }

  private static void write(Path file, String document) throws IOException {
    try (OutputFile out = OutputFile.create(file)) {
      out.stream().write(document.getBytes(StandardCharsets.UTF_8));
      out.commit();
    }
  }
}
