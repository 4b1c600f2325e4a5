package io.gpunvme.cli;

import io.gpunvme.base.Printable;
import io.gpunvme.cli.output.Counts;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.models.Manifest;
import io.gpunvme.models.Weights;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.storage.StorageAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code gpunvme inspect MODEL}. */
@Command(
    name = "inspect",
    description = {
      "Show a model's tensors (type, shape, bytes and file) and its metadata.",
      "Reads only the headers, and checks them completely."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme inspect model.safetensors",
      "  gpunvme inspect /models/llama --layers",
      "  gpunvme inspect models/a.gguf --device vfio:0000:01:00.0#1 --json",
      "  gpunvme inspect --device vfio:0000:01:00.0     the model that write-model wrote"
    })
final class InspectCommand extends ModelCommand {
  private static final Pattern LAYER = Pattern.compile("(?:layers|blk|h|block)\\.(\\d{1,9})\\.");
  private static final int LONGEST = 100;
  private static final String TENSOR = "tensor";

  @Option(names = "--layers", description = "Sums for each layer instead of single tensors.")
  private boolean layers;

  InspectCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run(Weights weights, StorageAddress address) {
    print(() -> printText(weights), () -> object(weights));
    return ExitCode.OK;
  }

  private void printText(Weights weights) {
    out()
        .printf(
            "%s: %s, %s, %s%n",
            weights.name(),
            brief(weights.format()),
            Counts.of(weights.tensors().size(), TENSOR),
            Sizes.format(weights.bytes()));
    weights
        .metadata()
        .forEach((key, value) -> out().printf("  %s: %s%n", brief(key), brief(value.toString())));
    Table table = new Table(0);
    if (layers) {
      layers(weights)
          .forEach((name, s) -> table.row(name, Sizes.format(s[1]), Counts.of(s[0], TENSOR)));
    } else {
      for (TensorInfo t : weights.tensors().values()) {
        table.row(
            brief(t.name()),
            t.type(),
            Arrays.toString(t.shape()),
            Sizes.format(t.bytes()),
            weights.files().size() > 1 ? brief(weights.file(t.name())) : "");
      }
    }
    table.print(out());
  }

  /** Without control characters, which a terminal would obey: files are outside input. */
  private static String brief(String value) {
    String printable = Printable.of(value);
    return printable.length() <= LONGEST ? printable : printable.substring(0, LONGEST) + "…";
  }

  /** Tensors and bytes of each layer by name; tensors in no layer come last. */
  private static Map<String, long[]> layers(Weights weights) {
    Map<Long, long[]> numbered = new TreeMap<>();
    for (TensorInfo t : weights.tensors().values()) {
      Matcher in = LAYER.matcher(t.name());
      long number = in.find() ? Long.parseLong(in.group(1)) : Long.MAX_VALUE;
      long[] sums = numbered.computeIfAbsent(number, _ -> new long[2]);
      sums[0]++;
      sums[1] += t.bytes();
    }
    Map<String, long[]> named = new LinkedHashMap<>();
    numbered.forEach(
        (n, sums) -> named.put(n == Long.MAX_VALUE ? "in no layer" : "layer " + n, sums));
    return named;
  }

  private static Map<String, Object> object(Weights weights) {
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("model", weights.name());
    all.put("format", weights.format());
    all.put("bytes", weights.bytes());
    all.put("files", weights.files());
    Map<String, Object> metadata = new LinkedHashMap<>();
    weights.metadata().forEach((key, value) -> metadata.put(key, value.toString()));
    all.put("metadata", metadata);
    Map<String, Manifest.Entry> sums =
        weights.storedManifest().map(Manifest::entries).orElse(Map.of());
    List<Map<String, Object>> tensors = new ArrayList<>();
    for (TensorInfo t : weights.tensors().values()) {
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("name", t.name());
      one.put("type", t.type().name());
      one.put("shape", t.shape());
      one.put("bytes", t.bytes());
      one.put("file", weights.file(t.name()));
      one.put("offset", t.offset());
      Manifest.Entry sum = sums.get(t.name());
      if (sum != null) {
        one.put("crc32c", HexFormat.of().toHexDigits(sum.crc32c()));
      }
      tensors.add(one);
    }
    all.put("tensors", tensors);
    return all;
  }
}
