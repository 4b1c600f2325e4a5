package io.gpunvme.cli;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Progress;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.models.Load;
import io.gpunvme.models.LoadPlan;
import io.gpunvme.models.LoadRequest;
import io.gpunvme.models.LoadedWeights;
import io.gpunvme.models.Manifest;
import io.gpunvme.models.ShardRules;
import io.gpunvme.models.Weights;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.path.StorageException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code gpunvme load MODEL...}. */
@Command(
    name = "load",
    description = {
      "Load the weights of models into the accelerator's memory, and print the rate.",
      "One model is loaded after the other; all are freed at the end. --plan prints how much load",
      "would read and how much memory it would need."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme load model.safetensors --verify",
      "  gpunvme load 'file:/models/llama?path=pinned' --order layers --verify=manifest.json",
      "  gpunvme load base.safetensors adapter.safetensors",
      "  gpunvme load /models/llama --order embed_tokens,layers.0,layers.1",
      "  gpunvme load /models/llama --rank 1/4 --shard megatron --plan",
      "  gpunvme load models/a.gguf --device stripe:vfio:0000:01:00.0,vfio:0000:02:00.0",
      "  gpunvme load --device vfio:0000:01:00.0 --verify      what write-model wrote",
      "  gpunvme load --device vfio:0000:01:00.0 --initiator gpu --placement vram-data"
    })
final class LoadCommand extends BaseCommand {
  private static final Pattern RANK = Pattern.compile("(\\d{1,6})/(\\d{1,6})");

  @Parameters(arity = "0..*", paramLabel = "MODEL", description = ModelPlace.MODEL)
  private List<String> models = List.of();

  @Option(
      names = "--match",
      paramLabel = "PATTERN",
      description = "Load only tensors whose names contain a match of this regular expression.")
  private @Nullable String match;

  @Option(
      names = "--order",
      paramLabel = "ORDER",
      description =
          "file: as in the files; layers: by name, digits compared as numbers; NAME,NAME,…: only"
              + " these, in this order, each a tensor or a layer such as layers.3 or blk.3; @FILE:"
              + " the same, one a line (file).")
  private String order = "file";

  @Option(
      names = "--rank",
      paramLabel = "R/N",
      description = "Load only the part that rank R of N (from 0) of tensor parallelism needs.")
  private @Nullable String rank;

  @Option(
      names = "--shard",
      paramLabel = "RULE",
      split = ",",
      description =
          "How tensors are divided among ranks: rows (dimension 0 where it divides evenly),"
              + " megatron (by the names of LLaMA-like models), or PATTERN=DIMENSION and"
              + " PATTERN=whole, the first that matches (rows).")
  private List<String> shard = List.of("rows");

  @Option(
      names = "--max-memory",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description =
          "Refuse if all models together need more of the accelerator's memory than this.")
  private long maxMemory;

  @Option(
      names = "--verify",
      arity = "0..1",
      fallbackValue = "",
      paramLabel = "FILE",
      description =
          "Compare each tensor's CRC-32C with that in a manifest. Without FILE: with those of the"
              + " raw model, or in MODEL.manifest.json (made by gpunvme weights manifest).")
  private @Nullable String verify;

  @Option(names = "--plan", description = "Print the plan, and load nothing.")
  private boolean planOnly;

  @Mixin private final ModelPlace place = new ModelPlace();
  @Mixin private final OwnSsdOptions ssds = new OwnSsdOptions();
  @Mixin private final AcceleratorOption accelerator = new AcceleratorOption();

  LoadCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    List<StorageAddress> addresses = addresses();
    LoadOrder wanted = LoadOrder.parse(order);
    LoadRequest common = request();
    StorageOptions how = ssds.storage(addresses);
    Accelerators.Choice choice = accelerator.open();
    try (Accelerator opened = choice.accelerator();
        Closing all = new Closing()) {
      List<Weights> open = new ArrayList<>();
      List<LoadPlan> plans = new ArrayList<>();
      for (StorageAddress address : addresses) {
        Weights weights = all.add(Weights.open(address, opened, how));
        open.add(weights);
        plans.add(weights.plan(wanted.of(common, weights)));
      }
      requireMemory(plans);
      LoadTexts texts = new LoadTexts(out(), choice);
      if (planOnly) {
        print(() -> texts.plans(open, plans), () -> LoadTexts.plansJson(open, plans));
        return ExitCode.OK;
      }
      List<LoadedWeights> loaded = load(addresses, open, plans, all);
      print(() -> texts.reports(open, loaded), () -> texts.reportsJson(open, loaded));
    }
    return ExitCode.OK;
  }

  private List<StorageAddress> addresses() throws IOException {
    String file = verify;
    if (models.isEmpty() && file != null && !file.isEmpty()) {
      requireManifest(file);
    }
    if (models.size() > 1 && file != null && !file.isEmpty()) {
      throw new UsageException(
          "--verify="
              + file
              + " is the manifest of one model; for several, write --verify without FILE");
    }
    if (models.isEmpty()) {
      return List.of(place.address(null));
    }
    List<StorageAddress> addresses = new ArrayList<>();
    for (String model : models) {
      addresses.add(place.address(model));
    }
    return addresses;
  }

  /** Without MODEL, the file may be the MODEL that the user meant. */
  private void requireManifest(String file) {
    String why = "";
    if (place.hasDevice()) {
      try {
        ManifestFiles.read(file);
        return;
      } catch (NoSuchFileException e) {
        why = ", and there is no such file";
      } catch (InvalidRequestException e) {
        why = ", and " + e.getMessage();
      }
    }
    throw new UsageException(
        "no MODEL: '%s' was read as the FILE of --verify%s; write --verify=FILE, or --verify after MODEL"
            .formatted(file, why));
  }

  private LoadRequest request() {
    LoadRequest request = LoadRequest.all();
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

  /** The tensors of all models stay in memory; the models use the ring one after the other. */
  private void requireMemory(List<LoadPlan> plans) {
    long tensors = plans.stream().mapToLong(LoadPlan::tensorBytes).reduce(0, Math::addExact);
    long ring = plans.stream().mapToLong(LoadPlan::ringBytes).max().orElse(0);
    if (maxMemory > 0 && tensors + ring > maxMemory) {
      throw new StorageException(
          StorageException.Kind.ACCELERATOR_MEMORY,
          "weights",
          -1,
          -1,
          "%d bytes for tensors and %d for the ring are more than the %d allowed: load fewer models, or one rank's part"
              .formatted(tensors, ring, maxMemory),
          null);
    }
  }

  private List<LoadedWeights> load(
      List<StorageAddress> addresses, List<Weights> open, List<LoadPlan> plans, Closing all)
      throws IOException {
    List<Load> loads = new ArrayList<>();
    for (int i = 0; i < open.size(); i++) {
      String file = verify;
      Manifest manifest =
          file == null ? null : ManifestFiles.of(open.get(i), addresses.get(i), file);
      loads.add(all.add(open.get(i).prepare(plans.get(i), manifest)));
    }
    List<LoadedWeights> loaded = new ArrayList<>();
    try (Progress progress = Progress.on(streams());
        CancelledAtExit stop = new CancelledAtExit()) {
      progress.begin("load", loads.stream().mapToLong(l -> l.plan().bytes()).sum());
      for (Load load : loads) {
        stop.now(load::cancel);
        loaded.add(all.add(load.run(progress::moved)));
      }
    }
    return loaded;
  }
}
