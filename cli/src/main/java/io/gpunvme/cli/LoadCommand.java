package io.gpunvme.cli;

import io.gpunvme.cli.output.Progress;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Streams;
import io.gpunvme.cli.output.Table;
import io.gpunvme.core.accel.Accelerators;
import io.gpunvme.core.path.set.MemberStats;
import io.gpunvme.core.weights.Load;
import io.gpunvme.core.weights.LoadPlan;
import io.gpunvme.core.weights.LoadReport;
import io.gpunvme.core.weights.LoadRequest;
import io.gpunvme.core.weights.LoadRequest.Order;
import io.gpunvme.core.weights.LoadedWeights;
import io.gpunvme.core.weights.Manifest;
import io.gpunvme.core.weights.ShardRules;
import io.gpunvme.core.weights.Weights;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code gpunvme load MODEL}. */
@Command(
    name = "load",
    description = {
      "Load a model's weights into the accelerator's memory, say how fast that was, and free them.",
      "What it will read and how much memory it will take is known before it starts (--plan)."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme load model.safetensors",
      "  gpunvme load 'file:/models/llama?path=pinned' --order layers --verify manifest.json",
      "  gpunvme load /models/llama --rank 1/4 --shard megatron --plan",
      "  gpunvme load models/a.gguf --device stripe:vfio:0000:01:00.0,vfio:0000:02:00.0",
      "  gpunvme load model.gguf --write-manifest manifest.json"
    })
final class LoadCommand extends ModelCommand {
  private static final Pattern RANK = Pattern.compile("(\\d{1,6})/(\\d{1,6})");

  @Option(
      names = "--match",
      paramLabel = "PATTERN",
      description = "Only tensors in whose names this regular expression is found.")
  private @Nullable String match;

  @Option(
      names = "--order",
      paramLabel = "ORDER",
      converter = OrderConverter.class,
      description = "file: as they lie in the files; layers: by name, numbers as numbers (file).")
  private Order order = Order.FILE;

  @Option(
      names = "--rank",
      paramLabel = "R/N",
      description = "Only what rank R of N (from 0) of tensor parallelism needs.")
  private @Nullable String rank;

  @Option(
      names = "--shard",
      paramLabel = "RULE",
      split = ",",
      description =
          "What ranks divide: rows (dimension 0 where that is even), megatron (by the names of"
              + " LLaMA-like models), or PATTERN=DIMENSION and PATTERN=whole, the first that fits"
              + " (rows).")
  private List<String> shard = List.of("rows");

  @Option(
      names = "--max-memory",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "Refuse to take more of the accelerator's memory than this.")
  private long maxMemory;

  @Option(
      names = "--verify",
      paramLabel = "FILE",
      description = "Compare each tensor's CRC-32C with that in a manifest.")
  private @Nullable Path verify;

  @Option(
      names = "--write-manifest",
      paramLabel = "FILE",
      description = "Instead, take the checksums of all tensors and write them to a new file.")
  private @Nullable Path writeManifest;

  @Option(names = "--plan", description = "Say what would be done, and do nothing.")
  private boolean planOnly;

  LoadCommand(Streams streams) {
    super(streams);
  }

  /** {@code file} or {@code layers}. */
  static final class OrderConverter implements picocli.CommandLine.ITypeConverter<Order> {
    @Override
    public Order convert(String text) {
      return switch (text) {
        case "file" -> Order.FILE;
        case "layers" -> Order.LAYERS;
        default ->
            throw new picocli.CommandLine.TypeConversionException(
                "'" + text + "' is neither file nor layers");
      };
    }
  }

  @Override
  int run(Weights weights, Accelerators.Choice choice) throws IOException {
    Path target = writeManifest;
    if (target != null) {
      return writeManifest(weights, target);
    }
    LoadRequest request = request();
    if (planOnly) {
      LoadPlan plan = weights.plan(request);
      print(() -> printPlan(weights, plan), () -> object(weights, plan));
      return ExitCode.OK;
    }
    Path file = verify;
    Manifest manifest = file == null ? null : Manifest.read(file);
    try (Load load = weights.prepare(request, manifest);
        Progress progress = Progress.on(streams())) {
      progress.begin("load", load.plan().bytes());
      Thread stop = Thread.ofPlatform().unstarted(load::cancel);
      Runtime.getRuntime().addShutdownHook(stop);
      try (LoadedWeights loaded = load.run(progress::moved)) {
        LoadReport report = loaded.report();
        progress.close();
        print(() -> printText(weights, choice, report), () -> object(weights, choice, report));
      } finally {
        removeHook(stop);
      }
    }
    return ExitCode.OK;
  }

  private static void removeHook(Thread hook) {
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // The process is ending: the hook has run, or runs now.
    }
  }

  private int writeManifest(Weights weights, Path target) throws IOException {
    if (Files.exists(target)) {
      throw new UsageException(target + " exists");
    }
    Manifest manifest;
    try (Progress progress = Progress.on(streams())) {
      progress.begin("checksums", weights.bytes());
      manifest = weights.manifest(progress::moved);
    }
    Files.writeString(target, manifest.toJson() + "\n");
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("manifest", target.toString());
    all.put("tensors", manifest.entries().size());
    print(
        () -> out().printf("%s: CRC-32C of %d tensors%n", target, manifest.entries().size()),
        () -> all);
    return ExitCode.OK;
  }

  private LoadRequest request() {
    LoadRequest request = LoadRequest.all().order(order);
    request = request.within(maxMemory, request.ringBytes());
    String pattern = match;
    if (pattern != null) {
      try {
        request = request.matching(Pattern.compile(pattern));
      } catch (PatternSyntaxException e) {
        throw new UsageException("--match " + pattern + ": " + e.getDescription());
      }
    }
    String who = rank;
    if (who != null) {
      Matcher parts = RANK.matcher(who);
      if (!parts.matches()) {
        throw new UsageException("--rank " + who + " is not R/N, as in 0/4");
      }
      request =
          request.rank(
              Integer.parseInt(parts.group(1)),
              Integer.parseInt(parts.group(2)),
              ShardRules.parse(shard));
    }
    return request;
  }

  private void printPlan(Weights weights, LoadPlan plan) {
    out()
        .printf(
            "%s: %d tensors, %s; reads %s; takes %s of the accelerator's memory, %s of it"
                + " meanwhile%n",
            weights.name(),
            plan.tensors(),
            Sizes.format(plan.bytes()),
            Sizes.format(plan.readBytes()),
            Sizes.format(plan.gpuBytes()),
            Sizes.format(plan.ringBytes()));
  }

  private void printText(Weights weights, Accelerators.Choice choice, LoadReport r) {
    out().printf("%s to %s (%s)%n", weights.name(), choice.accelerator().name(), choice.reason());
    Table table = new Table(0);
    table.row("tensors", r.tensors());
    table.row("bytes", Sizes.format(r.bytes()));
    table.row("read", Sizes.format(r.readBytes()));
    table.row("time", "%.3f s".formatted(r.nanos() / 1e9));
    table.row("rate", "%.2f GB/s".formatted(r.gigabytesPerSecond()));
    table.row("path", r.path() + ": " + r.mode());
    table.row(
        "memory",
        Sizes.format(r.tensorBytes()) + " and " + Sizes.format(r.ringBytes()) + " meanwhile");
    table.row("retries", r.retries());
    table.row("verified", r.verified() + " of " + r.tensors() + " tensors");
    for (MemberStats m : r.members()) {
      table.row(
          m.name(),
          "%s, %.2f GB/s %s"
              .formatted(Sizes.format(m.bytes()), m.gigabytesPerSecond(), m.failure()));
    }
    table.print(out());
  }

  private static Map<String, Object> object(Weights weights, LoadPlan plan) {
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("model", weights.name());
    plan.toJson().asMap().forEach(all::put);
    return all;
  }

  private static Map<String, Object> object(
      Weights weights, Accelerators.Choice choice, LoadReport report) {
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("model", weights.name());
    all.put("format", weights.format());
    all.put("accelerator", choice.accelerator().name());
    all.put("accelerator_reason", choice.reason());
    report.toJson().asMap().forEach(all::put);
    return all;
  }
}
