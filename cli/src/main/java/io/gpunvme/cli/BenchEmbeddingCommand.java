package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import java.io.IOException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code gpunvme bench embedding}. */
@Command(
    name = "embedding",
    description = {
      "Gather random rows of a matrix on an SSD, and write them back.",
      "The training of embeddings does that. All is flushed at the end, within the time that"
          + " counts.",
      "Rows are written back with the bytes that they have: what is on the SSD stays as it is, but"
          + " a",
      "crash in the middle of a write may leave half of a block. With --initiator cpu, or without"
          + " a",
      "GPU, the CPU reads and writes each row, and the output says so.",
      "Rows of the last batch are compared with what the CPU reads."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme bench embedding",
      "  gpunvme bench embedding table.bin --row-bytes 256 --batch 65536 --skew 3 --allow-write",
      "  gpunvme bench embedding vfio:0000:01:00.0#1 --placement vram --allow-write --json"
    })
final class BenchEmbeddingCommand extends BenchRowsCommand {
  @Option(names = "--allow-write", description = "Allow it to write to an SSD or a file of yours.")
  private boolean allowWrite;

  BenchEmbeddingCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    if (!isOwn() && !allowWrite) {
      throw new UsageException(
          "rows of %s are written back, with the bytes that they have; allow that by --allow-write"
              .formatted(address()));
    }
    return super.run();
  }

  @Override
  boolean updates() {
    return true;
  }

  @Override
  String benchmark() {
    return "embedding";
  }
}
