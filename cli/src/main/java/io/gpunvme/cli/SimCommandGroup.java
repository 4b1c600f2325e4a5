package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import picocli.CommandLine.Command;

/** {@code gpunvme sim WHAT}. */
@Command(
    name = "sim",
    description = "Work with the embedded NVMe controller: serve offers it to other programs.",
    footer = {
      "",
      "Examples:",
      "  gpunvme sim serve --socket /tmp/ssd.sock",
      "  gpunvme sim serve --help",
      "  gpunvme help sim                                 the keys of sim:…"
    })
final class SimCommandGroup extends BaseCommand {
  SimCommandGroup(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() {
    throw new UsageException("WHAT is missing: serve");
  }
}
