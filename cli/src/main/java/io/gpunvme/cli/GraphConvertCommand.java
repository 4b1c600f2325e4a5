package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.tools.graph.EdgeListFile;
import io.gpunvme.tools.graph.EdgeSource;
import io.gpunvme.tools.graph.NpzFile;
import java.io.IOException;
import java.nio.file.Path;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code gpunvme graph convert INPUT}. */
@Command(
    name = "convert",
    description = {
      "Make an image of a graph from a file.",
      "FILE.npz is a CSR matrix of scipy.sparse.save_npz: row i has an edge from i to each of its",
      "columns. Any other file is an edge list: lines 'FROM TO' or 'FROM TO WEIGHT', numbers from",
      "0 on, apart by spaces, tabs or commas; lines that begin with # or %% are comments.",
      "Edges to their own vertex are left out. Of several between the same vertices one stays,",
      "with the least weight."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme graph convert roads.txt --symmetrize --weights --output roads.graph",
      "  gpunvme graph convert matrix.npz --output matrix.graph"
    })
final class GraphConvertCommand extends GraphImageCommand {
  @Parameters(index = "0", paramLabel = "INPUT", description = "The edge list, or .npz file.")
  private Path input = Path.of("");

  @Option(names = "--symmetrize", description = "Have each edge lead back, too.")
  private boolean symmetrize;

  @Option(
      names = "--weights",
      description =
          "Keep weights, whole numbers from 1 to 255: the third number of each line, or the values"
              + " of the matrix.")
  private boolean weights;

  GraphConvertCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    boolean matrix = input.toString().endsWith(".npz");
    EdgeSource source = matrix ? NpzFile.open(input, weights) : EdgeListFile.open(input, weights);
    write(source, symmetrize);
    return ExitCode.OK;
  }
}
