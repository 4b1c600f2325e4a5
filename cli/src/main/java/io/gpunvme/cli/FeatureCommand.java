package io.gpunvme.cli;

import io.gpunvme.cli.output.Fields;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.nvme.driver.ControllerFeatures;
import io.gpunvme.nvme.driver.NvmeController;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code gpunvme feature DEVICE [list | get FID | set FID VALUE]}. */
@Command(
    name = "feature",
    description = "Print or change features of a controller.",
    customSynopsis =
        "gpunvme feature DEVICE [list | get FID | set FID VALUE --allow-write] [OPTIONS]",
    footer = {
      "",
      "FID is a name such as volatile-write-cache, or a number such as 0x06.",
      "",
      "Examples:",
      "  gpunvme feature sim:",
      "  gpunvme feature sim: get number-of-queues",
      "  gpunvme feature sim: get 0x06 --select default",
      "  gpunvme feature sim: set volatile-write-cache 0 --allow-write"
    })
final class FeatureCommand extends DeviceCommand {
  private static final int SHORT_HEX = 32;

  /** What to do. */
  enum Action {
    LIST,
    GET,
    SET;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  @Parameters(
      index = "1",
      arity = "0..1",
      paramLabel = "ACTION",
      description = "${COMPLETION-CANDIDATES} (list)")
  private Action action = Action.LIST;

  @Parameters(index = "2", arity = "0..1", paramLabel = "FID", description = "The feature.")
  private @Nullable String feature;

  @Parameters(
      index = "3",
      arity = "0..1",
      paramLabel = "VALUE",
      converter = Converters.Whole.class,
      description = "Command dword 11 of Set Features.")
  private @Nullable Long value;

  @Option(
      names = "--nsid",
      paramLabel = "N",
      converter = Converters.Nsid.class,
      description = "The namespace, for features of a namespace (1).")
  private int nsid = 1;

  @Option(
      names = "--select",
      paramLabel = "WHICH",
      description = "Which value to get: ${COMPLETION-CANDIDATES} (current).")
  private Feature.Select select = Feature.Select.CURRENT;

  @Option(names = "--save", description = "Keep the value across resets and power cycles.")
  private boolean save;

  @Option(
      names = "--data",
      paramLabel = "HEX",
      description = "The feature's data structure, for features that have one.")
  private @Nullable String data;

  @Option(names = "--allow-write", description = "Allow set.")
  private boolean allowWrite;

  FeatureCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    check();
    try (Device device = open(allowWrite)) {
      NvmeController controller = device.controller();
      switch (action) {
        case LIST -> list(controller);
        case GET -> show(Feature.read(controller, Feature.parse(given(feature)), nsid, select));
        case SET -> set(controller);
      }
    }
    return ExitCode.OK;
  }

  /** Finds the mistakes that need no open device. */
  private void check() {
    if (action == Action.LIST && feature != null) {
      throw new UsageException("list takes no feature");
    }
    if (action != Action.LIST) {
      if (feature == null) {
        throw new UsageException(action + " needs a feature");
      }
      Feature.parse(given(feature));
    }
    if ((action == Action.SET) != (value != null)) {
      throw new UsageException(
          action == Action.SET ? "set needs a value" : "only set takes a value");
    }
    if (action == Action.SET && !allowWrite) {
      throw new UsageException("set changes the device; add --allow-write to allow it");
    }
    if (value != null && value >>> Integer.SIZE != 0) {
      throw new UsageException("value " + value + " has more than 32 bits");
    }
  }

  private static String given(@Nullable String text) {
    if (text == null) {
      throw new UsageException("the feature is missing");
    }
    return text;
  }

  private void set(NvmeController controller) {
    int id = Feature.parse(given(feature));
    Long word = value;
    int cdw11 = word == null ? 0 : word.intValue();
    int namespace = Feature.ofNamespace(id) ? nsid : 0;
    ControllerFeatures features = controller.features();
    String hex = data;
    if (hex == null) {
      features.set(id, namespace, save, cdw11);
    } else {
      features.set(id, namespace, save, cdw11, bytes(hex));
    }
    show(Feature.read(controller, id, nsid, Feature.Select.CURRENT));
  }

  private static MemorySegment bytes(String hex) {
    try {
      return MemorySegment.ofArray(HexFormat.of().parseHex(hex));
    } catch (IllegalArgumentException e) {
      throw new UsageException("--data '" + hex + "' is not an even number of hex digits");
    }
  }

  private void show(Feature one) {
    print(
        () -> printText(one),
        () -> {
          Map<String, Object> object = new LinkedHashMap<>();
          object.put("device", device());
          object.putAll(one.json());
          return object;
        });
  }

  private void list(NvmeController controller) {
    List<Feature> all = Feature.readAll(controller, nsid, select);
    print(
        () -> all.forEach(this::printText),
        () -> {
          List<Object> features = new ArrayList<>();
          all.forEach(one -> features.add(one.json()));
          Map<String, Object> object = new LinkedHashMap<>();
          object.put("device", device());
          object.put("features", features);
          return object;
        });
  }

  private void printText(Feature one) {
    Fields.print(
        out(), "%02Xh %s: 0x%08x".formatted(one.id(), one.name(), one.word()), one.fields());
    if (!one.data().isEmpty()) {
      out().println("  data  " + shortened(one.data()));
    }
  }

  private static String shortened(String hex) {
    String text = hex.replaceFirst("(00)*$", "");
    return hex.length() <= SHORT_HEX || hex.length() == text.length()
        ? hex
        : text + " and " + (hex.length() - text.length()) / 2 + " zero bytes";
  }
}
