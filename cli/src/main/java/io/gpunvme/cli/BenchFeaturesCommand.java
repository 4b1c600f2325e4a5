package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import picocli.CommandLine.Command;

/** {@code gpunvme bench features}. */
@Command(
    name = "features",
    description = {
      "Gather random rows of a matrix that is on an SSD.",
      "Training on sampled neighbours does that. A GPU's kernels read what their page cache does"
          + " not",
      "have; whatever bytes are there are rows, and nothing is written. With --initiator cpu, or",
      "without a GPU, the CPU reads each row, and the output says so.",
      "Rows of the last batch are compared with what the CPU reads."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme bench features",
      "  gpunvme bench features features.bin --row-bytes 512 --batch 100000 --cache 1GiB",
      "  gpunvme bench features vfio:0000:01:00.0#1 --placement vram --skew 4 --json",
      "  gpunvme bench features features.bin --initiator cpu"
    })
final class BenchFeaturesCommand extends BenchRowsCommand {
  BenchFeaturesCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  boolean updates() {
    return false;
  }

  @Override
  String benchmark() {
    return "features";
  }
}
