package io.gpunvme.cli;

import com.google.gson.JsonObject;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.storage.plan.IoOrder;
import io.gpunvme.storage.plan.Plan;
import io.gpunvme.storage.plan.PlanOptions;
import io.gpunvme.storage.plan.Planner;
import io.gpunvme.storage.plan.Ranges;
import io.gpunvme.storage.plan.Stripes;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code gpunvme plan [RANGE…]}. */
@Command(
    name = "plan",
    description = {
      "Show which I/Os would read many ranges of a source; nothing is read.",
      "RANGE is OFFSET:LENGTH; :TARGET-OFFSET and then :TARGET may follow. Without them, a range"
          + " goes",
      "right after the one before it. Sizes may have units. A file of ranges is CSV, with one range"
          + " a",
      "line (# starts a comment), or a JSON array of [offset, length, target offset, target]."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme plan --size 1GiB 1000:1MiB:1000 4MiB:100:0:1",
      "  gpunvme plan --source model.safetensors --ranges ranges.csv --max 512KiB --json",
      "  gpunvme plan --size 1GiB --kinds kinds.json --read tokens:17:4 --read 7:0:1 --gap 0",
      "  gpunvme plan --size 1GiB --stripe 4:64KiB 0:1MiB"
    })
final class PlanCommand extends BaseCommand {
  /** The size of the source, given by one of two options. */
  private static final class Source {
    @Option(
        names = "--size",
        paramLabel = "SIZE",
        required = true,
        converter = Converters.Size.class,
        description = "Bytes in the source.")
    private @Nullable Long size;

    @Option(
        names = "--source",
        paramLabel = "FILE",
        required = true,
        description = "Take the size of this file.")
    private @Nullable Path file;

    long bytes() throws IOException {
      if (file != null) {
        if (Files.exists(file) && !Files.isRegularFile(file)) {
          throw new UsageException(file + " is not a regular file; give its --size");
        }
        return Files.size(file);
      }
      return size == null ? 0 : size;
    }
  }

  @ArgGroup(multiplicity = "1")
  private final Source source = new Source();

  @Mixin private final PlanRanges request = new PlanRanges();

  @Option(
      names = "--align",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "Offsets and lengths of I/Os are multiples of this (4KiB).")
  private long alignment = 4096;

  @Option(
      names = "--target-align",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "An I/O goes straight to target offsets that are multiples of this (4KiB).")
  private long targetAlignment = 4096;

  @Option(
      names = "--max",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "Longest I/O (1MiB).")
  private long max = 1 << 20;

  @Option(
      names = "--gap",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "One I/O reads across gaps of at most this many unneeded bytes (16KiB).")
  private long gap = 16 << 10;

  @Option(
      names = "--stripe",
      paramLabel = "N:UNIT",
      converter = StripeConverter.class,
      description = "The source is striped over N members in units of UNIT bytes, e.g. 4:64KiB.")
  private Stripes stripes = Stripes.NONE;

  @Option(
      names = "--order",
      paramLabel = "ORDER",
      description = "Order of the I/Os: offset, or given: the order of the ranges (offset).")
  private IoOrder order = IoOrder.OFFSET;

  @Option(
      names = "--limit",
      paramLabel = "N",
      converter = Converters.Whole.class,
      description = "List at most this many I/Os (50).")
  private long limit = 50;

  PlanCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    PlanOptions options =
        PlanOptions.of(source.bytes())
            .alignment(alignment)
            .targetAlignment(targetAlignment)
            .maxBytes(max)
            .gap(gap)
            .stripes(stripes)
            .order(order)
            .build();
    Ranges ranges = request.ranges();
    Plan plan = Planner.plan(ranges, options);
    int listed = (int) Math.min(limit, plan.ios());
    print(() -> printText(plan, listed), () -> object(plan, listed));
    return ExitCode.OK;
  }

  private void printText(Plan plan, int listed) {
    out()
        .printf(
            "%d %s, %s: %d I/Os read %s, %s of it unneeded%n",
            plan.ranges(),
            plan.ranges() == 1 ? "range" : "ranges",
            Sizes.format(plan.bytesAsked()),
            plan.ios(),
            Sizes.format(plan.bytesRead()),
            Sizes.format(plan.bytesOverread()));
    int staged = plan.ios() - plan.directIos();
    Table totals = new Table(2);
    totals.row(
        "direct", plan.directIos() + " I/Os", Sizes.format(plan.directBytes()), "to their place");
    totals.row(
        "staged",
        staged + " I/Os",
        Sizes.format(plan.stagedBytes()),
        "copied in " + (plan.pieces() - plan.directIos()) + " pieces");
    totals.print(out());
    if (listed > 0) {
      out().println();
      printIos(plan, listed);
    }
    if (listed < plan.ios()) {
      out().printf("… and %d more (--limit)%n", plan.ios() - listed);
    }
  }

  private void printIos(Plan plan, int listed) {
    boolean striped = stripes.members() > 1;
    Table table = new Table(0);
    table.row(striped ? "MEMBER:OFFSET" : "OFFSET", "LENGTH", "HOW", "TARGET:OFFSET");
    for (int io = 0; io < listed; io++) {
      String place = striped ? plan.member(io) + ":" + plan.offset(io) : "" + plan.offset(io);
      String how = plan.isDirect(io) ? "direct" : "staged";
      table.row(place, plan.length(io), how, pieces(plan, io));
    }
    table.print(out());
  }

  /** The first pieces of an I/O: where they go, and the part of the I/O unless it is all of it. */
  private static String pieces(Plan plan, int io) {
    int shown = 2;
    StringBuilder text = new StringBuilder();
    int first = plan.firstPiece(io);
    int end = Math.min(plan.endPiece(io), first + shown);
    for (int piece = first; piece < end; piece++) {
      text.append(piece > first ? ", " : "")
          .append(plan.target(piece))
          .append(':')
          .append(plan.targetOffset(piece));
      if (plan.pieceLength(piece) < plan.length(io)) {
        text.append(" (%d at %d)".formatted(plan.pieceLength(piece), plan.pieceOffset(piece)));
      }
    }
    int more = plan.endPiece(io) - end;
    return more == 0 ? text.toString() : text + " and " + more + " more";
  }

  private static Map<String, Object> object(Plan plan, int listed) {
    JsonObject json = plan.toJson(listed);
    return new LinkedHashMap<>(json.asMap());
  }
}
