package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.storage.plan.IoOrder;
import io.gpunvme.tools.graph.EdgePlace;
import io.gpunvme.tools.graph.GapEdges;
import io.gpunvme.tools.graph.GraphAlgorithm;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.function.Function;
import picocli.CommandLine;

/** The command line as a call: everything but leaving the process. */
final class CommandLineTool {
  private static final int USAGE_COLUMNS = 100;

  private static final String HELP = "help";

  /** By name, in the order in which help lists them. */
  private static final SequencedMap<String, Function<OutputStreams, BaseCommand>> COMMANDS =
      commands();

  private CommandLineTool() {}

  private static SequencedMap<String, Function<OutputStreams, BaseCommand>> commands() {
    SequencedMap<String, Function<OutputStreams, BaseCommand>> all = new LinkedHashMap<>();
    all.put("demo", DemoCommand::new);
    all.put("gather", GatherCommand::new);
    all.put("bench", BenchCommand::new);
    all.put("graph", GraphCommandGroup::new);
    all.put("explain", ExplainCommand::new);
    all.put("plan", PlanCommand::new);
    all.put("inspect", InspectCommand::new);
    all.put("plan-model", PlanModelCommand::new);
    all.put("plan-fleet", PlanFleetCommand::new);
    all.put("load", LoadCommand::new);
    all.put("write-model", WriteModelCommand::new);
    all.put("weights", WeightsCommand::new);
    all.put("ls", LsCommand::new);
    all.put("stat", StatCommand::new);
    all.put("extents", ExtentsCommand::new);
    all.put("cat", CatCommand::new);
    all.put("cufile", CuFileCommand::new);
    all.put("list", ListCommand::new);
    all.put("topology", TopologyCommand::new);
    all.put("top", TopCommand::new);
    all.put("doctor", DoctorCommand::new);
    all.put("try", TryCommand::new);
    all.put("bind", BindCommand::new);
    all.put("unbind", UnbindCommand::new);
    all.put("check-p2p", CheckP2pCommand::new);
    all.put("pin", PinCommand::new);
    all.put("sim", SimCommandGroup::new);
    all.put("identify", IdentifyCommand::new);
    all.put("read", ReadCommand::new);
    all.put("write", WriteCommand::new);
    all.put("regs", RegsCommand::new);
    all.put("log", LogCommand::new);
    all.put("feature", FeatureCommand::new);
    all.put("version", VersionCommand::new);
    all.put(HELP, HelpCommand::new);
    return all;
  }

  /** Runs one command and returns its exit code. A command that fails never makes it throw. */
  static int run(OutputStreams streams, String... words) {
    String[] args = helpAsJson(words);
    CommandLine tool = create(streams, args.length == 0 ? "" : args[0]);
    CommandFailures failures = new CommandFailures(streams, List.of(args));
    tool.setParameterExceptionHandler(failures::usage);
    tool.setExecutionExceptionHandler(failures::failure);
    try {
      int code = tool.execute(args);
      tool.getOut().flush();
      return code;
    } catch (OutOfMemoryError e) {
      return failures.heap(e);
    }
  }

  /** {@code read --help --json} is {@code help read --json}. */
  private static String[] helpAsJson(String[] args) {
    List<String> words = List.of(args);
    boolean help = words.contains("--help") || words.contains("-h");
    if (!help || !words.contains("--json")) {
      return args;
    }
    if (COMMANDS.containsKey(words.getFirst())) {
      return new String[] {HELP, words.getFirst(), "--json"};
    }
    return words.getFirst().startsWith("-") ? new String[] {HELP, "--json"} : args;
  }

  /** All commands, or only that of the first word, if it is one: picocli needs time for each. */
  private static CommandLine create(OutputStreams streams, String first) {
    CommandLine tool = new CommandLine(new Gpunvme(streams));
    Function<OutputStreams, BaseCommand> single = COMMANDS.get(first);
    if (single == null || first.equals(HELP)) {
      COMMANDS.values().forEach(command -> tool.addSubcommand(command.apply(streams)));
    } else {
      tool.addSubcommand(single.apply(streams));
    }
    CommandLine bench = tool.getSubcommands().get("bench");
    if (bench != null) {
      bench.addSubcommand(new BenchPathsCommand(streams));
      bench.addSubcommand(new BenchFeaturesCommand(streams));
      bench.addSubcommand(new BenchEmbeddingCommand(streams));
      bench.addSubcommand(new BenchReportCommand(streams));
      bench.addSubcommand(new BenchGraphCommand(streams));
    }
    CommandLine graph = tool.getSubcommands().get("graph");
    if (graph != null) {
      graph.addSubcommand(new GraphGenerateCommand(streams));
      graph.addSubcommand(new GraphConvertCommand(streams));
      graph.addSubcommand(new GraphInfoCommand(streams));
    }
    CommandLine weights = tool.getSubcommands().get("weights");
    if (weights != null) {
      weights.addSubcommand(new WeightsManifestCommand(streams));
    }
    CommandLine sim = tool.getSubcommands().get("sim");
    if (sim != null) {
      sim.addSubcommand(new SimServeCommand(streams));
    }
    tool.setOut(writer(streams.out()));
    tool.setErr(writer(streams.err()));
    tool.setUsageHelpWidth(USAGE_COLUMNS);
    tool.registerConverter(
        BenchCommand.Benchmark.class, Converters.choice(BenchCommand.Benchmark.class));
    tool.registerConverter(
        BenchReportCommand.Open.class, Converters.choice(BenchReportCommand.Open.class));
    tool.registerConverter(GapEdges.Kind.class, Converters.choice(GapEdges.Kind.class));
    tool.registerConverter(EdgePlace.class, Converters.choice(EdgePlace.class));
    tool.registerConverter(GraphAlgorithm.class, Converters.choice(GraphAlgorithm.class));
    tool.registerConverter(LogCommand.Page.class, Converters.choice(LogCommand.Page.class));
    tool.registerConverter(
        FeatureCommand.Action.class, Converters.choice(FeatureCommand.Action.class));
    tool.registerConverter(FileCommand.Journal.class, Converters.choice(FileCommand.Journal.class));
    tool.registerConverter(IoOrder.class, Converters.choice(IoOrder.class));
    tool.registerConverter(
        PlanModelCommand.ParameterType.class,
        Converters.choice(PlanModelCommand.ParameterType.class));
    tool.registerConverter(Feature.Select.class, Converters.choice(Feature.Select.class));
    // "@file" is the value of --faults.
    tool.setExpandAtFiles(false);
    return tool;
  }

  private static PrintWriter writer(PrintStream stream) {
    return new PrintWriter(stream, true, stream.charset());
  }
}
