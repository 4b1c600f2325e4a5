package io.gpunvme.cli;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Printable;
import io.gpunvme.cli.output.Counts;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.models.LayerRate;
import io.gpunvme.models.LayerSize;
import io.gpunvme.models.ModelLayers;
import io.gpunvme.models.StreamForecast;
import io.gpunvme.models.StreamPlan;
import io.gpunvme.models.Weights;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.storage.StorageAddress;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code gpunvme plan-model MODEL}. */
@Command(
    name = "plan-model",
    description = {
      "Show which layers of a model stay within a budget, and what streaming takes.",
      "Reads only the headers, and config.json beside safetensors. The layers are the numbered"
          + " names",
      "with most bytes; the cache, buffers that the model makes itself, and what layers compute"
          + " with,",
      "come on top of the memory that is shown. Of a mixture only the experts that are chosen are"
          + " read,",
      "through a second ring, where each has matrices gate, up and down: stored one by one, or"
          + " stacked",
      "as Hugging Face's transformers and GGUF files have them. Others count with their layers."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme plan-model /models/llama --gpu-budget 8GiB",
      "  gpunvme plan-model /models/llama --gpu-budget 8GiB --measure",
      "  gpunvme plan-model /models/llama --gpu-budget 0 --rate 12GB/s --compute 60ms --json",
      "  gpunvme plan-model models/a.gguf --device vfio:0000:01:00.0#1 --gpu-budget 4GiB",
      "  gpunvme plan-model --device vfio:0000:01:00.0     the model that write-model wrote"
    })
final class PlanModelCommand extends ModelCommand {
  /** What the time of a pass is told for if no other rate is known. */
  private static final double EXAMPLE_RATE = 10e9;

  private static final double GIGA = 1e9;
  private static final double MILLIS = 1e3;
  private static final double SHORT = 0.1;
  private static final String LAYER = "layer";

  /** What parameters may be used as. */
  enum ParameterType {
    BF16(ElementType.BF16),
    F16(ElementType.F16),
    F32(ElementType.F32);

    private final ElementType element;

    ParameterType(ElementType element) {
      this.element = element;
    }
  }

  /** The rate of reading, by one of two options. */
  private static final class Rate {
    @Option(
        names = "--rate",
        paramLabel = "RATE",
        required = true,
        converter = Converters.Rate.class,
        description = "How fast layers can be read: 12GB/s.")
    private @Nullable Double told;

    @Option(
        names = "--measure",
        required = true,
        description =
            "Measure the rate: read 512MiB of the streamed layers or more, and one layer before"
                + " them, as streaming reads them. Needs the memory of the ring.")
    private boolean measure;
  }

  @Option(
      names = "--gpu-budget",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description =
          "GPU memory for all weights together; 0: no layer stays, whatever the rest takes (as much"
              + " as there is).")
  private long budget = StreamPlan.EVERYTHING;

  @Option(
      names = "--slots",
      paramLabel = "N",
      converter = Converters.Count.class,
      description = "Slots of the ring, 2 or more (4, or fewer where that is faster).")
  private int slots = StreamPlan.ANY_SLOTS;

  @Option(
      names = "--dtype",
      paramLabel = "TYPE",
      description =
          "What parameters are used as: BF16, F16 or F32 (what most elements are stored as, of"
              + " which quantised ones count as BF16).")
  private @Nullable ParameterType dtype;

  @ArgGroup private @Nullable Rate rate;

  @Option(
      names = "--compute",
      paramLabel = "TIME",
      converter = Converters.Time.class,
      description = "How long a token takes with all layers in memory, if you know: 60ms.")
  private @Nullable Duration compute;

  PlanModelCommand(OutputStreams streams) {
    super(streams);
  }

  /**
   * What is shown.
   *
   * @param rate bytes a second; null if it was neither told nor measured
   * @param measured null if nothing was measured
   */
  private record Answer(
      Weights weights,
      ModelLayers layers,
      StreamPlan plan,
      long least,
      long everything,
      @Nullable Double rate,
      @Nullable LayerRate measured,
      double computeSeconds) {
    /** With as few experts as may be chosen. */
    StreamForecast forecast(double bytesPerSecond) {
      return plan.forecast(chosen().least(), bytesPerSecond, computeSeconds);
    }

    ChosenExperts chosen() {
      return ChosenExperts.of(layers, plan);
    }
  }

  @Override
  int run(Weights weights, StorageAddress address) {
    ModelLayers layers =
        ModelLayers.of(weights, dtype == null ? null : dtype.element).expertsApart();
    List<LayerSize> sizes = layers.sizes();
    long fixed = layers.fixedBytes();
    StreamPlan plan = plan(weights, sizes, fixed);
    Rate by = rate;
    LayerRate measured =
        by != null && by.measure && plan.streamed() > 0
            ? LayerRate.measure(weights, layers, plan)
            : null;
    Answer answer =
        new Answer(
            weights,
            layers,
            plan,
            StreamPlan.leastBudget(sizes, fixed, slots),
            StreamPlan.of(sizes, fixed, StreamPlan.EVERYTHING, slots).deviceBytes(),
            measured != null ? (Double) measured.bytesPerSecond() : by == null ? null : by.told,
            measured,
            compute == null ? 0 : compute.toNanos() / GIGA);
    print(() -> printText(answer), () -> object(answer));
    return ExitCode.OK;
  }

  private StreamPlan plan(Weights weights, List<LayerSize> sizes, long fixed) {
    try {
      return StreamPlan.of(sizes, fixed, budget, slots);
    } catch (InvalidRequestException e) {
      throw new UsageException(weights.name() + ": " + e.getMessage());
    }
  }

  // ---- text

  private void printText(Answer a) {
    StreamPlan plan = a.plan();
    out()
        .printf(
            "%s: %s '%s' of %s, used as %s; %s in no layer%n",
            a.weights().name(),
            Counts.of(plan.layers(), LAYER),
            Printable.of(a.layers().names()),
            Sizes.format(a.layers().bytes()),
            a.layers().type(),
            Sizes.format(plan.fixedBytes()));
    if (plan.streamed() == 0) {
      out()
          .printf(
              "all layers stay: %s of GPU memory at most; nothing is streamed%n",
              Sizes.format(plan.deviceBytes()));
    } else {
      printStreaming(a);
    }
    if (a.least() < a.everything()) {
      out()
          .printf(
              "a budget is from %s (a ring of the fewest slots) to %s (all layers stay)%n",
              Sizes.format(a.least()), Sizes.format(a.everything()));
    }
  }

  private void printStreaming(Answer a) {
    StreamPlan plan = a.plan();
    out()
        .printf(
            "%d of %s stay; the others go through a ring of %d slots of %s, %s at a time%n",
            plan.resident().size(),
            Counts.of(plan.layers(), LAYER),
            plan.slots(),
            Sizes.format(plan.slotBytes()),
            Counts.of(plan.readsInFlight(), "read"));
    out()
        .printf(
            "GPU memory: %s at most (%s in no layer, %s of layers that stay, %s ring, %s%s for"
                + " conversions)%n",
            Sizes.format(plan.deviceBytes()),
            Sizes.format(plan.fixedBytes()),
            Sizes.format(plan.residentBytes()),
            Sizes.format(plan.ringBytes()),
            plan.expertSlots() == 0
                ? ""
                : "%s ring of experts, %s of routers, "
                    .formatted(
                        Sizes.format(plan.expertRingBytes()), Sizes.format(plan.routerBytes())),
            Sizes.format(plan.convertedBytes()));
    ChosenExperts chosen = a.chosen();
    if (!chosen.layers().isEmpty()) {
      out().println(experts(plan, chosen));
    }
    out()
        .printf(
            "each pass, one token at a time, reads %s%s: %s%n",
            range(plan.passBytes() + chosen.least(), plan.passBytes() + chosen.most()),
            chosen.layers().isEmpty()
                ? ""
                : " (%s and experts)".formatted(Sizes.format(plan.passBytes())),
            time(a));
  }

  private static String experts(StreamPlan plan, ChosenExperts chosen) {
    ChosenExperts.OfLayer longest = chosen.longest();
    return "experts: %s in %s, %s of %s in each%s; for a token %s of %s, through a second ring of %d slots of %s"
        .formatted(
            longest.least() == longest.most()
                ? "%d of %d".formatted(longest.least(), longest.count())
                : "%d to %d of %2$d (nothing says how many)"
                    .formatted(longest.least(), longest.most()),
            Counts.of(chosen.layers().size(), LAYER),
            range(longest.least() * longest.bytes(), longest.most() * longest.bytes()),
            Sizes.format(longest.count() * longest.bytes()),
            chosen.isEven() ? "" : " at most",
            range(chosen.least(), chosen.most()),
            Sizes.format(chosen.all()),
            plan.expertSlots(),
            Sizes.format(plan.expertSlotBytes()));
  }

  private static String range(long least, long most) {
    return least == most
        ? Sizes.format(least)
        : "%s to %s".formatted(Sizes.format(least), Sizes.format(most));
  }

  private static String time(Answer a) {
    Double rate = a.rate();
    StreamForecast pass = a.forecast(rate == null ? EXAMPLE_RATE : rate);
    String limit =
        switch (pass.limit()) {
          case READING -> a.computeSeconds() == 0 ? "" : "; reading is the limit";
          case COMPUTE -> "; compute is the limit, reading takes " + seconds(pass.readSeconds());
          case NOTHING_STREAMED -> "";
        };
    String least = seconds(pass.seconds()) + " at least" + limit;
    LayerRate measured = a.measured();
    if (rate == null) {
      return "at 10 GB/s " + least + "; --measure finds the rate of this source, --rate tells it";
    }
    String by =
        measured == null
            ? ""
            : " (measured with %s, by path %s, to %s)"
                .formatted(
                    Sizes.format(measured.bytes()),
                    measured.path(),
                    a.weights().accelerator().name());
    return String.format(Locale.ROOT, "at %.2f GB/s%s %s", rate / GIGA, by, least);
  }

  private static String seconds(double seconds) {
    return seconds < SHORT
        ? String.format(Locale.ROOT, "%.3f ms", seconds * MILLIS)
        : String.format(Locale.ROOT, "%.3f s", seconds);
  }

  // ---- JSON

  private Map<String, Object> object(Answer a) {
    StreamPlan plan = a.plan();
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("model", a.weights().name());
    all.put("format", a.weights().format());
    all.put("layer_names", a.layers().names());
    all.put("layers", plan.layers());
    all.put("layer_bytes", a.layers().bytes());
    all.put("dtype", a.layers().type().name());
    all.put("budget", budget == StreamPlan.EVERYTHING ? null : budget);
    all.put("least_budget", a.least());
    all.put("everything_bytes", a.everything());
    all.put("resident", plan.resident());
    all.put("slots", plan.slots());
    all.put("slot_bytes", plan.slotBytes());
    all.put("reads_in_flight", plan.readsInFlight());
    all.put("fixed_bytes", plan.fixedBytes());
    all.put("resident_bytes", plan.residentBytes());
    all.put("ring_bytes", plan.ringBytes());
    all.put("converted_bytes", plan.convertedBytes());
    all.put("device_bytes", plan.deviceBytes());
    all.put("pass_bytes", plan.passBytes());
    all.put("experts", experts(a));
    putTimes(all, a);
    return all;
  }

  /** Null for a model that has none. */
  private static @Nullable Map<String, Object> experts(Answer a) {
    if (!a.layers().hasExperts()) {
      return null;
    }
    StreamPlan plan = a.plan();
    ChosenExperts chosen = a.chosen();
    OptionalInt perToken = a.layers().expertsPerToken();
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("per_token", perToken.isPresent() ? (Integer) perToken.getAsInt() : null);
    all.put("slots", plan.expertSlots());
    all.put("slot_bytes", plan.expertSlotBytes());
    all.put("ring_bytes", plan.expertRingBytes());
    all.put("router_bytes", plan.routerBytes());
    all.put("least_token_bytes", chosen.least());
    all.put("most_token_bytes", chosen.most());
    all.put("bytes", chosen.all());
    all.put("layers", chosen.layers().stream().map(PlanModelCommand::ofLayer).toList());
    return all;
  }

  private static Map<String, Object> ofLayer(ChosenExperts.OfLayer layer) {
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("layer", layer.layer());
    all.put("experts", layer.count());
    all.put("expert_bytes", layer.bytes());
    all.put("least_token_bytes", layer.least() * layer.bytes());
    all.put("most_token_bytes", layer.most() * layer.bytes());
    return all;
  }

  private static void putTimes(Map<String, Object> all, Answer a) {
    Double rate = a.rate();
    LayerRate measured = a.measured();
    StreamForecast pass =
        rate == null && a.plan().streamed() > 0 ? null : a.forecast(rate == null ? 1 : rate);
    all.put("bytes_per_second", rate == null ? null : Math.round(rate));
    all.put("measured_bytes", measured == null ? null : measured.bytes());
    all.put("path", measured == null ? null : measured.path());
    all.put("accelerator", measured == null ? null : a.weights().accelerator().name());
    all.put("compute_seconds", a.computeSeconds() == 0 ? null : (Double) a.computeSeconds());
    all.put("read_seconds", pass == null ? null : (Double) pass.readSeconds());
    all.put("token_seconds", pass == null ? null : (Double) pass.seconds());
    all.put("limit", pass == null ? null : pass.limit().name().toLowerCase(Locale.ROOT));
  }
}
