package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import picocli.CommandLine.Command;

/** {@code gpunvme sim WHAT}. */
@Command(
    name = "sim",
    description = "Work with the embedded NVMe controller: serve makes it a device for others.",
    footer = {
      "",
      "Examples:",
      "  gpunvme sim serve --socket /tmp/ssd.sock",
      "  gpunvme sim serve --help",
      "  gpunvme help sim                                 its options, and what sim:… means"
    })
final class SimCommandGroup extends BaseCommand {
  SimCommandGroup(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() {
    throw new UsageException("say what to do with the embedded controller: serve");
  }
}
