package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import picocli.CommandLine.Command;

/** {@code gpunvme graph WHAT}. */
@Command(
    name = "graph",
    description = {
      "Make images of graphs whose edges GPU kernels read from an SSD.",
      "generate makes synthetic ones, convert makes them of edge lists and SciPy's matrices, info",
      "says what an image has. gpunvme bench graph runs programs on them."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme graph generate kron --scale 20 --output kron20.graph",
      "  gpunvme graph convert edges.txt --symmetrize --output edges.graph",
      "  gpunvme graph info kron20.graph",
      "  gpunvme bench graph kron20.graph --algorithm bfs"
    })
final class GraphCommandGroup extends BaseCommand {
  GraphCommandGroup(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() {
    throw new UsageException("WHAT is missing: generate, convert, or info");
  }
}
