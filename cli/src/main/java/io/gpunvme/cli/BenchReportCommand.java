package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.tools.report.BenchmarkReport;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code gpunvme bench report DIR}. */
@Command(
    name = "report",
    description = {
      "Make one HTML page with plots and tables from result files (*.json).",
      "The page needs no network and no other file."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme bench report bench/results",
      "  gpunvme bench report bench/results --out results.html --open yes"
    })
final class BenchReportCommand extends BaseCommand {
  @Parameters(
      index = "0",
      paramLabel = "DIR",
      description = "Folder of the result files; its subfolders are read too.")
  private Path folder = Path.of(".");

  @Option(
      names = "--out",
      paramLabel = "FILE",
      description = "File for the page, written whole or not at all (bench-report.html).")
  private Path out = Path.of("bench-report.html");

  @Option(
      names = "--open",
      paramLabel = "WHETHER",
      description = "yes: show the page with xdg-open; no: do not (no).")
  private Open open = Open.NO;

  BenchReportCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    BenchmarkReport report = BenchmarkReport.of(folder);
    byte[] page = report.html().getBytes(StandardCharsets.UTF_8);
    try (OutputFile file = OutputFile.create(out)) {
      file.stream().write(page);
      file.commit();
    }
    if (open == Open.YES) {
      show();
    }
    print(
        () ->
            out()
                .printf(
                    "%s: %d results of %d files, %d KB%n",
                    out, report.results(), report.files(), page.length / 1000),
        () -> object(report, page.length));
    return ExitCode.OK;
  }

  private void show() throws IOException {
    new ProcessBuilder("xdg-open", out.toAbsolutePath().toString())
        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
        .redirectError(ProcessBuilder.Redirect.DISCARD)
        .start();
  }

  private Map<String, Object> object(BenchmarkReport report, int bytes) {
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("page", out.toString());
    object.put("bytes", bytes);
    object.put("files", report.files());
    object.put("results", report.results());
    return object;
  }

  /** Whether to show the page. */
  enum Open {
    YES,
    NO;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }
}
