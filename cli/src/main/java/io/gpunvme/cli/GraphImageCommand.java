package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Progress;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.tools.graph.EdgeSource;
import io.gpunvme.tools.graph.GraphBuilder;
import io.gpunvme.tools.graph.GraphHeader;
import io.gpunvme.tools.graph.GraphListener;
import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import picocli.CommandLine.Option;

/** A subcommand that writes an image of a graph. */
abstract class GraphImageCommand extends BaseCommand {
  private static final double NANOS_PER_SECOND = 1e9;

  @Option(
      names = "--output",
      required = true,
      paramLabel = "FILE",
      description = "The image, written whole or not at all; replaces a file of this name.")
  private Path output = Path.of("");

  GraphImageCommand(OutputStreams streams) {
    super(streams);
  }

  /** Where the image goes. */
  final Path output() {
    return output;
  }

  /** Writes it, and says what it has. */
  final void write(EdgeSource source, boolean symmetric) throws IOException {
    long start = System.nanoTime();
    GraphHeader header;
    try (OutputFile file = OutputFile.create(output);
        Progress progress = Progress.on(streams())) {
      header = GraphBuilder.build(source, symmetric, file.channel(), shown(progress));
      file.commit();
    }
    double seconds = (System.nanoTime() - start) / NANOS_PER_SECOND;
    print(
        () ->
            out()
                .printf(
                    "%s: %s, %s, in %.1f s%n",
                    output, text(header), Sizes.format(header.bytes()), seconds),
        () -> {
          Map<String, Object> all = new LinkedHashMap<>();
          all.put("output", output.toString());
          describe(header, all);
          all.put("seconds", seconds);
          return all;
        });
  }

  static GraphListener shown(Progress progress) {
    return new GraphListener() {
      @Override
      public void begins(String what, long bytes) {
        progress.begin(what, bytes);
      }

      @Override
      public void moved(long bytes) {
        progress.moved(bytes);
      }
    };
  }

  static String text(GraphHeader header) {
    return "%d vertices, %d directed edges, %s, %s"
        .formatted(
            header.vertices(),
            header.edges(),
            header.symmetric() ? "symmetric" : "not symmetric",
            header.weighted() ? "with weights" : "without weights");
  }

  static void describe(GraphHeader header, Map<String, Object> all) {
    all.put("vertices", header.vertices());
    all.put("edges", header.edges());
    all.put("symmetric", header.symmetric());
    all.put("weighted", header.weighted());
    all.put("bytes", header.bytes());
  }
}
