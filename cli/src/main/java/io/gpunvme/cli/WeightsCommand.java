package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import picocli.CommandLine.Command;

/** {@code gpunvme weights WHAT}. */
@Command(
    name = "weights",
    description = "Work on the files of models: manifest computes checksums of their tensors.",
    footer = {
      "",
      "Examples:",
      "  gpunvme weights manifest /models/llama",
      "  gpunvme weights manifest --help"
    })
final class WeightsCommand extends BaseCommand {
  WeightsCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() {
    throw new UsageException("WHAT is missing: manifest");
  }
}
