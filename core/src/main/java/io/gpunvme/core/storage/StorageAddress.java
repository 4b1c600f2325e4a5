package io.gpunvme.core.storage;

import io.gpunvme.core.device.DeviceAddress;
import io.gpunvme.core.path.PathKind;
import io.gpunvme.nvme.InvalidRequestException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.SequencedMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * What is opened. Immutable.
 *
 * <ul>
 *   <li>{@code file:/data/model.bin?path=pinned}, or just {@code /data/model.bin}: a file of a
 *       mounted file system; {@code path} is {@code auto}, {@code cufile}, {@code pinned} or {@code
 *       mmap}. The last question mark begins the options.
 *   <li>any {@link DeviceAddress}: a controller of our own, always by the path {@code direct}
 * </ul>
 */
public final class StorageAddress {
  private static final String FILE = "file:";
  private static final String PATH = "path";
  private static final String NAME = "name";

  private final @Nullable DeviceAddress device;
  private final @Nullable Path file;
  private final @Nullable PathKind path;
  private final SequencedMap<String, String> options;

  private StorageAddress(
      @Nullable DeviceAddress device,
      @Nullable Path file,
      @Nullable PathKind path,
      SequencedMap<String, String> options) {
    this.device = device;
    this.file = file;
    this.path = path;
    this.options = options;
  }

  /**
   * Reads an address. Whether there is such a file or device is found out when it is opened.
   *
   * @throws InvalidRequestException if it makes no sense
   */
  public static StorageAddress parse(String text) {
    boolean named = text.startsWith(FILE);
    if (named || text.startsWith("/") || text.startsWith("./") || text.startsWith("../")) {
      return file(named ? text.substring(FILE.length()) : text);
    }
    return new StorageAddress(DeviceAddress.parse(text), null, null, new LinkedHashMap<>());
  }

  /** A controller that somebody else has opened, by its name in messages. */
  static StorageAddress of(String controller) {
    return new StorageAddress(null, null, null, new LinkedHashMap<>(Map.of(NAME, controller)));
  }

  private static StorageAddress file(String text) {
    int question = text.lastIndexOf('?');
    String name = question < 0 ? text : text.substring(0, question);
    if (name.isEmpty()) {
      throw new InvalidRequestException("'" + text + "' names no file");
    }
    SequencedMap<String, String> options = new LinkedHashMap<>();
    if (question >= 0) {
      readOptions(text.substring(question + 1), options);
    }
    String wanted = options.remove(PATH);
    return new StorageAddress(
        null, Path.of(name), wanted == null ? null : pathOrAuto(wanted), options);
  }

  private static void readOptions(String text, SequencedMap<String, String> options) {
    for (String pair : text.split("&", -1)) {
      int equals = pair.indexOf('=');
      if (equals < 1) {
        throw new InvalidRequestException("'" + pair + "' is not key=value");
      }
      if (options.putIfAbsent(pair.substring(0, equals), pair.substring(equals + 1)) != null) {
        throw new InvalidRequestException(pair.substring(0, equals) + "= is given twice");
      }
    }
  }

  /**
   * A path by its name; null for {@code auto}.
   *
   * @throws InvalidRequestException if there is none of that name
   */
  public static @Nullable PathKind pathOrAuto(String name) {
    String upper = name.toUpperCase(Locale.ROOT);
    for (PathKind kind : PathKind.values()) {
      if (kind.name().equals(upper)) {
        return kind;
      }
    }
    if (upper.equals("AUTO")) {
      return null;
    }
    throw new InvalidRequestException(
        "no path '%s': there are auto, %s"
            .formatted(
                name,
                Arrays.stream(PathKind.values())
                    .map(PathKind::toString)
                    .collect(Collectors.joining(", "))));
  }

  /** The controller; null if it is a file. */
  public @Nullable DeviceAddress device() {
    return device;
  }

  /** The file; null if it is a controller. */
  public @Nullable Path file() {
    return file;
  }

  /** The path asked for; null if the choice is ours. */
  public @Nullable PathKind path() {
    return path;
  }

  /** What else is given for a file, e.g. {@code depth} of the path {@code pinned}. */
  public SequencedMap<String, String> options() {
    return Collections.unmodifiableSequencedMap(options);
  }

  /** The same by another path; null: the choice is ours. */
  public StorageAddress with(@Nullable PathKind other) {
    return new StorageAddress(device, file, other, options);
  }

  @Override
  public String toString() {
    if (device != null) {
      return device.toString();
    }
    if (file == null) {
      return options.getOrDefault(NAME, "");
    }
    SequencedMap<String, String> all = new LinkedHashMap<>();
    if (path != null) {
      all.put(PATH, path.toString());
    }
    all.putAll(options);
    String text =
        all.entrySet().stream()
            .map(e -> e.getKey() + "=" + e.getValue())
            .collect(Collectors.joining("&"));
    return FILE + file + (text.isEmpty() ? "" : "?" + text);
  }
}
