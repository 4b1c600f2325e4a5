package io.gpunvme.cli;

import io.gpunvme.base.Printable;
import io.gpunvme.cli.output.Counts;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.tools.fleet.Fleet;
import io.gpunvme.tools.fleet.FleetPlan;
import io.gpunvme.tools.fleet.FleetPlot;
import io.gpunvme.tools.fleet.Parameter;
import io.gpunvme.tools.fleet.Parameters;
import io.gpunvme.tools.fleet.Placement;
import io.gpunvme.tools.fleet.Traffic;
import io.gpunvme.tools.fleet.Way;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;

/** {@code gpunvme plan-fleet}. */
@Command(
    name = "plan-fleet",
    description = {
      "Show how long many machines would need to load a model and to write checkpoints.",
      "A simulation: nothing is read, and the machines need not exist. Ways: cache, the page cache"
          + " of each",
      "machine; own, each machine's SSDs; peers, one part on each machine's SSDs, the others by the"
          + " network;",
      "pool, targets of NVMe over fabrics. Each parameter is told with where it comes from."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme plan-fleet --machines 1000 --model 140GiB",
      "  gpunvme plan-fleet --machines 8 --model 140GiB --from pool --targets 2",
      "  gpunvme plan-fleet --machines 64 --model 140GiB --placement sharded --checkpoint 1TiB",
      "  gpunvme plan-fleet --machines 1000 --model 140GiB --set nic=100GB/s --set pin=0",
      "  gpunvme plan-fleet --machines 1000 --model 140GiB --plot fleet.svg --json",
      "",
      "A machine file is a JSON object such as {\"nic\": {\"value\": 100, \"kind\": \"measured\",",
      "\"source\": \"ib_write_bw\"}}. --set comes after it. Exit codes: 0 done, 1 the plot cannot"
          + " be",
      "written, 2 wrong usage."
    })
final class PlanFleetCommand extends BaseCommand {
  private static final double GIGA = 1e9;
  private static final double MILLI = 1e-3;
  private static final int PERCENT = 100;
  private static final int INDENT = 2;
  private static final String NONE = "-";

  /** Names of an enum's constants in lower case. */
  static final class ByWay implements ITypeConverter<Way> {
    @Override
    public Way convert(String text) throws Exception {
      return Converters.choice(Way.class).convert(text);
    }
  }

  /** The same for placements. */
  static final class Place implements ITypeConverter<Placement> {
    @Override
    public Placement convert(String text) throws Exception {
      return Converters.choice(Placement.class).convert(text);
    }
  }

  @Option(
      names = "--machines",
      paramLabel = "N",
      converter = Converters.Whole.class,
      description = "Machines, all alike (1).")
  private long machines = 1;

  @Option(
      names = "--gpus",
      paramLabel = "N",
      converter = Converters.Whole.class,
      description = "GPUs of each (8).")
  private long gpus = 8;

  @Option(
      names = "--ssds",
      paramLabel = "N",
      converter = Converters.Whole.class,
      description = "SSDs of each, over which everything is striped (8).")
  private long ssds = 8;

  @Option(
      names = "--model",
      paramLabel = "SIZE",
      required = true,
      converter = Converters.Size.class,
      description = "Bytes of the model.")
  private long model;

  @Option(
      names = "--placement",
      paramLabel = "HOW",
      converter = Place.class,
      description =
          "machine: each machine has the model once, divided over its GPUs; gpu: each GPU has all"
              + " of it, and a machine reads it once; sharded: all GPUs of all machines have it"
              + " once; alone: each GPU has all of it and reads it itself (machine).")
  private Placement placement = Placement.MACHINE;

  @Option(
      names = "--from",
      paramLabel = "WAY",
      converter = ByWay.class,
      description = "Only cache, own, peers or pool (all of them).")
  private @Nullable Way from;

  @Option(
      names = "--targets",
      paramLabel = "N",
      converter = Converters.Whole.class,
      description = "Targets of the pool (8).")
  private long targets = Fleet.TARGETS;

  @Option(
      names = "--checkpoint",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "Bytes of a checkpoint, of all machines together (as the model).")
  private @Nullable Long checkpoint;

  @Option(
      names = "--lost",
      paramLabel = "N",
      converter = Converters.Whole.class,
      description = "Machines that fail in the middle of the load (1 if there are several).")
  private @Nullable Long lost;

  @Option(
      names = "--one-process",
      description = "A process for each machine, not one for each GPU as torchrun has them.")
  private boolean oneProcess;

  @Option(
      names = "--machine",
      paramLabel = "FILE",
      description = "Parameters, as JSON, instead of those that come with gpunvme.")
  private @Nullable Path machine;

  @Option(
      names = "--set",
      paramLabel = "NAME=VALUE",
      description = "One parameter: nic=100GB/s. Without --json all are listed.")
  private List<String> assignments = new ArrayList<>();

  @Option(
      names = "--plot",
      paramLabel = "FILE",
      description = "Draw loads by 1 to N machines as SVG into FILE, whole or not at all.")
  private @Nullable Path plot;

  PlanFleetCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    Parameters parameters = Parameters.defaults();
    if (machine != null) {
      parameters = parameters.with(machine);
    }
    for (String assignment : assignments) {
      parameters = parameters.with(assignment);
    }
    Fleet fleet =
        Fleet.of(machines, gpus, ssds, model)
            .withPlacement(placement)
            .withTargets(targets)
            .withOneProcess(oneProcess);
    if (checkpoint != null) {
      fleet = fleet.withCheckpointBytes(checkpoint);
    }
    if (lost != null) {
      fleet = fleet.withLost(lost);
    }
    FleetPlan plan =
        from == null ? FleetPlan.of(fleet, parameters) : FleetPlan.of(fleet, parameters, from);
    if (plot != null) {
      try (OutputFile out = OutputFile.create(plot)) {
        out.stream().write(FleetPlot.of(plan).getBytes(StandardCharsets.UTF_8));
        out.commit();
      }
    }
    print(() -> printText(plan), () -> object(plan));
    return ExitCode.OK;
  }

  // ---- text

  private void printText(FleetPlan plan) {
    Fleet fleet = plan.fleet();
    out()
        .printf(
            "%s, placement %s; %s with %s and %s each; a checkpoint of %s%n%n",
            Sizes.format(fleet.modelBytes()),
            fleet.placement(),
            Counts.of(fleet.machines(), "machine"),
            Counts.of(fleet.gpus(), "GPU"),
            Counts.of(fleet.ssds(), "SSD"),
            Sizes.format(fleet.checkpointBytes()));
    Table table = new Table(0);
    table.row("FROM", "LOAD", "FIXED", "LEAST", "BUSIEST", "SAVE", "RESTORE", lossHeading(fleet));
    for (FleetPlan.ByWay by : plan.ways()) {
      Traffic load = by.load();
      FleetPlan.Loss loss = by.loss();
      table.row(
          by.way(),
          seconds(load.seconds()),
          seconds(load.fixedSeconds()),
          seconds(load.leastSeconds()),
          busiest(load),
          by.save() == null ? NONE : seconds(by.save().seconds()),
          by.restore() == null ? NONE : seconds(by.restore().seconds()),
          loss == null ? NONE : extra(loss));
    }
    table.print(out());
    out().println();
    out()
        .println(
            "LOAD is simulated, FIXED the part of it in which no byte moves; LEAST is the bytes of"
                + " the busiest link by its rate.");
    plan.ways().forEach(this::printWay);
    out().println();
    printParameters(plan.parameters());
  }

  private static String lossHeading(Fleet fleet) {
    return fleet.lost() + " LOST";
  }

  private static String extra(FleetPlan.Loss loss) {
    Double extra = loss.extraSeconds();
    return extra == null ? "no end" : "+" + seconds(extra);
  }

  private static String busiest(Traffic traffic) {
    return String.format(
        Locale.ROOT, "%s %.0f %%", traffic.busiest().name(), PERCENT * traffic.utilisation());
  }

  private void printWay(FleetPlan.ByWay by) {
    out().printf("%n%s: limited by %s%n", by.way(), by.load().limit());
    Table table = new Table(INDENT);
    for (Traffic.LinkUse link : by.load().links()) {
      table.row(link.name(), bytes(link.bytes()), "at least " + seconds(link.leastSeconds()));
    }
    table.print(out());
    out().printf("  on the SSDs of each machine: %s of the model%n", bytes(by.storedBytes()));
    Traffic save = by.save();
    FleetPlan.Loss loss = by.loss();
    if (save != null) {
      out().printf("  a checkpoint is limited by %s%n", save.limit());
    }
    if (save != null && loss != null) {
      out()
          .printf(
              "  without what is lost a checkpoint is %s%n", by.survives() ? "whole" : "not whole");
    }
    if (loss != null) {
      out()
          .printf(
              "  lost in the middle: %s; %s more are read%n", loss.what(), bytes(loss.moreBytes()));
    }
  }

  private void printParameters(Parameters parameters) {
    Table table = new Table(0);
    table.row("PARAMETER", "VALUE", "", "MEANING, SOURCE");
    parameters
        .values()
        .forEach(
            (parameter, value) ->
                table.row(
                    parameter,
                    number(value.number()) + parameter.unit(),
                    value.kind(),
                    parameter.meaning() + ": " + Printable.of(value.source())));
    table.print(out());
  }

  private static String bytes(double bytes) {
    return bytes < Long.MAX_VALUE
        ? Sizes.format(Math.round(bytes))
        : String.format(Locale.ROOT, "%.3g bytes", bytes);
  }

  private static String seconds(double seconds) {
    return seconds < 1
        ? String.format(Locale.ROOT, "%.3g ms", seconds / MILLI)
        : String.format(Locale.ROOT, "%.2f s", seconds);
  }

  private static String number(double value) {
    return value == Math.rint(value)
        ? String.format(Locale.ROOT, "%.0f", value)
        : String.format(Locale.ROOT, "%.4g", value);
  }

  // ---- JSON

  private static Map<String, Object> object(FleetPlan plan) {
    Fleet fleet = plan.fleet();
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("machines", fleet.machines());
    all.put("gpus", fleet.gpus());
    all.put("ssds", fleet.ssds());
    all.put("model_bytes", fleet.modelBytes());
    all.put("checkpoint_bytes", fleet.checkpointBytes());
    all.put("placement", fleet.placement());
    all.put("targets", fleet.targets());
    all.put("lost", fleet.lost());
    all.put("one_process", fleet.oneProcess());
    all.put("ways", plan.ways().stream().map(PlanFleetCommand::way).toList());
    Map<String, Object> parameters = new LinkedHashMap<>();
    plan.parameters()
        .values()
        .forEach(
            (parameter, value) -> parameters.put(parameter.toString(), value(parameter, value)));
    all.put("parameters", parameters);
    return all;
  }

  private static Map<String, Object> way(FleetPlan.ByWay by) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("from", by.way());
    one.put("load", traffic(by.load()));
    one.put("stored_bytes", Math.round(by.storedBytes()));
    one.put("save", by.save() == null ? null : traffic(by.save()));
    one.put("restore", by.restore() == null ? null : traffic(by.restore()));
    one.put("checkpoint_survives", by.save() == null ? null : by.survives());
    FleetPlan.Loss loss = by.loss();
    one.put("loss", loss == null ? null : loss(loss));
    return one;
  }

  private static Map<String, Object> traffic(Traffic traffic) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("seconds", traffic.seconds());
    one.put("fixed_seconds", traffic.fixedSeconds());
    one.put("least_seconds", traffic.leastSeconds());
    one.put("limit", traffic.limit());
    one.put("busiest", traffic.busiest().name());
    one.put("utilisation", traffic.utilisation());
    List<Map<String, Object>> links = new ArrayList<>();
    for (Traffic.LinkUse link : traffic.links()) {
      Map<String, Object> row = new LinkedHashMap<>();
      row.put("link", link.name());
      row.put("gigabytes", link.bytes() / GIGA);
      row.put("least_seconds", link.leastSeconds());
      links.add(row);
    }
    one.put("links", links);
    return one;
  }

  private static Map<String, Object> loss(FleetPlan.Loss loss) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("seconds", loss.seconds());
    one.put("extra_seconds", loss.extraSeconds());
    one.put("more_gigabytes", loss.moreBytes() / GIGA);
    one.put("what", loss.what());
    return one;
  }

  private static Map<String, Object> value(Parameter parameter, Parameters.Value value) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("value", value.number());
    one.put("unit", parameter.unit());
    one.put("kind", value.kind());
    one.put("source", value.source());
    return one;
  }
}
