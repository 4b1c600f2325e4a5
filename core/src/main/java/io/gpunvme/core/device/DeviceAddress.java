package io.gpunvme.core.device;

import io.gpunvme.nvme.InvalidRequestException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/**
 * Which device: a kind and its options, {@code sim:size=1GiB,lba=4096}. Immutable.
 *
 * <p>A backslash takes the character behind it literally, so that a path may contain a comma.
 */
public final class DeviceAddress {
  /** The kind of an embedded controller. */
  public static final String EMBEDDED = "sim";

  private final String kind;
  private final SequencedMap<String, String> options;

  private DeviceAddress(String kind, SequencedMap<String, String> options) {
    this.kind = kind;
    this.options = options;
  }

  /** An embedded controller with its default options. */
  public static DeviceAddress embedded() {
    return new DeviceAddress(EMBEDDED, new LinkedHashMap<>());
  }

  /**
   * Reads an address. What the options mean is checked when the device is opened.
   *
   * @throws InvalidRequestException if there is no such kind of device, or an option is not {@code
   *     key=value} or given twice
   */
  public static DeviceAddress parse(String text) {
    int colon = text.indexOf(':');
    String kind = colon < 0 ? text : text.substring(0, colon);
    if (!kind.equals(EMBEDDED)) {
      throw new InvalidRequestException(
          "no device '"
              + text
              + "': this version knows embedded controllers, "
              + EMBEDDED
              + ":key=value,…");
    }
    SequencedMap<String, String> options = new LinkedHashMap<>();
    if (colon >= 0 && !text.substring(colon + 1).isBlank()) {
      readOptions(text.substring(colon + 1), options);
    }
    return new DeviceAddress(kind, options);
  }

  private static void readOptions(String text, Map<String, String> options) {
    StringBuilder pair = new StringBuilder();
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '\\' && i + 1 < text.length()) {
        pair.append(text.charAt(++i));
      } else if (c == ',') {
        addOption(pair.toString(), options);
        pair.setLength(0);
      } else {
        pair.append(c);
      }
    }
    addOption(pair.toString(), options);
  }

  private static void addOption(String pair, Map<String, String> options) {
    int equals = pair.indexOf('=');
    if (equals < 1) {
      throw new InvalidRequestException("'" + pair + "' is not key=value");
    }
    String key = pair.substring(0, equals);
    if (options.putIfAbsent(key, pair.substring(equals + 1)) != null) {
      throw new InvalidRequestException(key + "= is given twice");
    }
  }

  /** What comes before the colon. */
  public String kind() {
    return kind;
  }

  /** The value of an option, or null if it is not given. */
  public @Nullable String option(String key) {
    return options.get(key);
  }

  /** Whether an option is given. */
  public boolean has(String key) {
    return options.containsKey(key);
  }

  /** The same address with an option set, replacing the value it may have. */
  public DeviceAddress with(String key, String value) {
    SequencedMap<String, String> all = new LinkedHashMap<>(options);
    all.put(key, value);
    return new DeviceAddress(kind, all);
  }

  /** The same address without an option. */
  public DeviceAddress without(String key) {
    SequencedMap<String, String> rest = new LinkedHashMap<>(options);
    rest.remove(key);
    return new DeviceAddress(kind, rest);
  }

  /** What comes behind the colon. */
  public String optionText() {
    StringBuilder text = new StringBuilder();
    options.forEach(
        (key, value) -> text.append(text.isEmpty() ? "" : ",").append(escape(key + "=" + value)));
    return text.toString();
  }

  private static String escape(String text) {
    return text.replace("\\", "\\\\").replace(",", "\\,");
  }

  /** The address as {@link #parse} reads it. */
  @Override
  public String toString() {
    return kind + ":" + optionText();
  }
}
