package io.gpunvme.cli;

import io.gpunvme.cli.output.Fields;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.driver.ControllerFeatures;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.Features;
import io.gpunvme.nvme.spec.FieldValue;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * A feature as it was read.
 *
 * @param word dword 0 of the completion
 * @param data its data structure in hexadecimal; empty without one
 */
record Feature(int id, Select select, int word, String data) {
  private static final int IDS = 256;
  private static final int LONG_HOST_IDENTIFIER = 1;

  /** One of a feature's values. */
  enum Select {
    CURRENT(Features.SEL_CURRENT),
    DEFAULT(Features.SEL_DEFAULT),
    SAVED(Features.SEL_SAVED),
    SUPPORTED(Features.SEL_SUPPORTED);

    private final int code;

    Select(int code) {
      this.code = code;
    }

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** A feature by number, or by the specification's name in lower case with hyphens. */
  static int parse(String text) {
    for (int id = 1; id < IDS; id++) {
      if (known(id) && slug(id).equals(text.toLowerCase(Locale.ROOT))) {
        return id;
      }
    }
    try {
      int id = Integer.decode(text);
      if (id > 0 && id < IDS) {
        return id;
      }
    } catch (NumberFormatException e) {
      // Reported below, like numbers out of range.
    }
    throw new UsageException(
        "no feature '" + text + "': give a number from 1 to 255, or a name such as " + slug(6));
  }

  private static boolean known(int id) {
    return !FeatureId.name(id).matches("Feature \\p{XDigit}{2}h");
  }

  private static String slug(int id) {
    return FeatureId.name(id).toLowerCase(Locale.ROOT).replace(' ', '-');
  }

  /** Whether a namespace has a value of its own. */
  static boolean ofNamespace(int id) {
    return switch (id) {
      case FeatureId.ERROR_RECOVERY,
          FeatureId.LBA_RANGE_TYPE,
          FeatureId.RESERVATION_NOTIFICATION_MASK,
          FeatureId.RESERVATION_PERSISTENCE,
          FeatureId.WRITE_PROTECTION ->
          true;
      default -> false;
    };
  }

  private static int dataBytes(int id) {
    return switch (id) {
      case FeatureId.TIMESTAMP -> 8;
      case FeatureId.HOST_IDENTIFIER -> 16;
      case FeatureId.AUTONOMOUS_POWER -> 256;
      case FeatureId.HOST_BEHAVIOR, FeatureId.PREDICTABLE_LATENCY_CONFIG -> 512;
      case FeatureId.HOST_MEMORY_BUFFER, FeatureId.LBA_RANGE_TYPE -> 4096;
      default -> 0;
    };
  }

  /** Reads one feature. */
  static Feature read(NvmeController controller, int id, int nsid, Select select) {
    boolean capabilities = select == Select.SUPPORTED;
    ControllerFeatures.Value value =
        controller
            .features()
            .get(
                id,
                ofNamespace(id) ? nsid : 0,
                select.code,
                id == FeatureId.HOST_IDENTIFIER ? LONG_HOST_IDENTIFIER : 0,
                capabilities ? 0 : dataBytes(id));
    String hex = HexFormat.of().formatHex(value.data().toArray(ValueLayout.JAVA_BYTE));
    return new Feature(id, select, value.dw0(), hex);
  }

  /** Reads every feature the controller has among those the specification names. */
  static List<Feature> readAll(NvmeController controller, int nsid, Select select) {
    List<Feature> all = new ArrayList<>();
    for (int id = 1; id < IDS; id++) {
      if (known(id)) {
        try {
          all.add(read(controller, id, nsid, select));
        } catch (NvmeStatusException e) {
          if (StatusCode.of(e.status()) != StatusCode.INVALID_FIELD) {
            throw e;
          }
        }
      }
    }
    return all;
  }

  String name() {
    return FeatureId.name(id);
  }

  /** The dword taken apart. */
  List<FieldValue> fields() {
    return select == Select.SUPPORTED
        ? Features.decodeCapabilities(word)
        : Features.decode(id, word);
  }

  Map<String, Object> json() {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("id", id);
    one.put("name", name());
    one.put("select", select.toString());
    one.put("value", Integer.toUnsignedLong(word));
    one.put("fields", Fields.json(fields()));
    one.put("data", data.isEmpty() ? null : data);
    return one;
  }
}
