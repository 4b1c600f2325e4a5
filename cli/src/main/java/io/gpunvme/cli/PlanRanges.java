package io.gpunvme.cli;

import io.gpunvme.base.ByteSize;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Printable;
import io.gpunvme.storage.kind.Kind;
import io.gpunvme.storage.kind.ReadRequest;
import io.gpunvme.storage.plan.Ranges;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/**
 * Ranges on the command line, in a file, or as reads of kinds; in this order if there are several.
 */
final class PlanRanges {
  private static final String KIND_FORM = "KIND:INDEX or KIND:INDEX:LENGTH";

  @Parameters(paramLabel = "RANGE", arity = "0..*", description = "OFFSET:LENGTH, e.g. 1MiB:100.")
  private List<String> arguments = new ArrayList<>();

  @Option(names = "--ranges", paramLabel = "FILE", description = "Ranges as CSV or JSON.")
  private @Nullable Path file;

  @Option(
      names = "--kinds",
      paramLabel = "FILE",
      description = "Kinds as JSON: {\"kinds\": {NAME: {\"offset\", \"length\", \"element\"}}}.")
  private @Nullable Path kinds;

  @Option(
      names = "--read",
      paramLabel = "KIND:INDEX[:LENGTH]",
      description = "LENGTH elements (1) of a kind, from INDEX on.")
  private List<String> reads = new ArrayList<>();

  Ranges ranges() throws IOException {
    Path kindFile = kinds;
    Path rangeFile = file;
    if (arguments.isEmpty() && rangeFile == null && reads.isEmpty()) {
      throw new UsageException(
          "no range: give OFFSET:LENGTH, --ranges FILE, or --kinds and --read");
    }
    if (reads.isEmpty() != (kindFile == null)) {
      throw new UsageException("--kinds FILE and --read KIND:INDEX go together");
    }
    Ranges.Builder ranges = Ranges.builder();
    for (String argument : arguments) {
      RangeFile.add(ranges, argument.split(":", -1), "'" + Printable.quote(argument) + "'");
    }
    if (rangeFile != null) {
      RangeFile.read(rangeFile, ranges);
    }
    if (kindFile != null) {
      addReads(kindFile, ranges);
    }
    return ranges.build();
  }

  private void addReads(Path kindFile, Ranges.Builder ranges) throws IOException {
    ReadRequest request;
    try (BufferedReader reader = Files.newBufferedReader(kindFile)) {
      request = ReadRequest.parse(reader);
    }
    for (String read : reads) {
      String[] parts = read.split(":", -1);
      if (parts.length < 2 || parts.length > 3) {
        throw new UsageException("--read '" + read + "' is not " + KIND_FORM);
      }
      Kind kind = request.kind(parts[0]);
      long index = number(parts[1], read);
      long length = parts.length == 3 ? number(parts[2], read) : 1;
      ranges.add(kind.offset(index, length), length * kind.element());
    }
  }

  private static long number(String text, String read) {
    try {
      return ByteSize.parse(text);
    } catch (InvalidRequestException e) {
      throw new UsageException("--read '" + read + "' is not " + KIND_FORM);
    }
  }
}
