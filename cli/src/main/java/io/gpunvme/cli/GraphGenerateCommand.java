package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.tools.graph.GapEdges;
import java.io.IOException;
import java.lang.foreign.Arena;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code gpunvme graph generate KIND}. */
@Command(
    name = "generate",
    description = {
      "Make a synthetic graph as the GAP Benchmark Suite has them, the same one each time.",
      "Edges lead in both directions; none leads to its own vertex, and none is there twice.",
      "Memory: 8 bytes a vertex, and Java's heap. Where that does not hold all edges, they are",
      "made several times, which takes longer: GPUNVME_JAVA_OPTS=-Xmx64g gives it 64 GiB."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme graph generate kron --scale 20 --output kron20.graph",
      "  gpunvme graph generate uniform --scale 22 --degree 8 --weights --output urand22.graph",
      "  gpunvme graph generate kron --scale 27 --output /data/gap-kron.graph --json"
    })
final class GraphGenerateCommand extends GraphImageCommand {
  @Parameters(
      index = "0",
      paramLabel = "KIND",
      description = "kron (Kronecker: few vertices have most edges), or uniform.")
  private GapEdges.Kind kind = GapEdges.Kind.KRON;

  @Option(
      names = "--scale",
      required = true,
      paramLabel = "S",
      converter = Converters.Count.class,
      description = "2^S vertices, 1 to 31.")
  private int scale;

  @Option(
      names = "--degree",
      paramLabel = "N",
      converter = Converters.Count.class,
      description = "Edges for each vertex, each counted once (16).")
  private int degree = 16;

  @Option(
      names = "--seed",
      paramLabel = "N",
      converter = Converters.Whole.class,
      description = "Another number gives another graph (27491095, as in GAP).")
  private long seed = GapEdges.SEED;

  @Option(names = "--weights", description = "Give each edge a weight from 1 to 255, for sssp.")
  private boolean weights;

  GraphGenerateCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    try (Arena arena = Arena.ofShared()) {
      write(GapEdges.of(kind, scale, degree, seed, weights, arena), true);
    }
    return ExitCode.OK;
  }
}
