package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.tools.graph.GraphHeader;
import io.gpunvme.tools.graph.GraphReader;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

/** {@code gpunvme graph info IMAGE}. */
@Command(
    name = "info",
    description = "Say what an image of a graph has. Only its first 4 KiB are read.",
    footer = {
      "",
      "Examples:",
      "  gpunvme graph info kron20.graph",
      "  gpunvme graph info vfio:0000:01:00.0#1:/kron27.graph --json"
    })
final class GraphInfoCommand extends BaseCommand {
  @Parameters(
      index = "0",
      paramLabel = "IMAGE",
      description = "A file, an SSD, a partition, or a file on one.")
  private String image = "";

  GraphInfoCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    GraphHeader header;
    StorageAddress address = ModelPlace.existing(ModelPlace.parse(image));
    try (Accelerator host = CpuAccelerator.open();
        GpuStorage storage = GpuStorage.open(address, host, StorageOptions.defaults());
        GraphReader reader = GraphReader.open(storage)) {
      header = reader.header();
    }
    print(() -> printText(header), () -> object(header));
    return ExitCode.OK;
  }

  private void printText(GraphHeader header) {
    out().println(image + ": " + GraphImageCommand.text(header));
    out().println();
    Table table =
        new Table(2)
            .row(
                "offsets",
                Sizes.format((header.vertices() + 1) * Long.BYTES),
                at(header.offsetsAt()))
            .row("edges", Sizes.format(header.edges() * Integer.BYTES), at(header.edgesAt()));
    if (header.weighted()) {
      table.row("weights", Sizes.format(header.edges()), at(header.weightsAt()));
    }
    table.row("all", Sizes.format(header.bytes()), "").print(out());
  }

  private static String at(long offset) {
    return "from byte " + offset + " on";
  }

  private Map<String, Object> object(GraphHeader header) {
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("image", image);
    GraphImageCommand.describe(header, all);
    all.put("offsets_at", header.offsetsAt());
    all.put("edges_at", header.edgesAt());
    all.put("weights_at", header.weighted() ? header.weightsAt() : null);
    return all;
  }
}
