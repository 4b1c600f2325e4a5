package io.gpunvme.storage;

import io.gpunvme.base.ByteSize;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.storage.fs.FileAddress;
import io.gpunvme.storage.path.PathKind;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SequencedMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The address of a storage. Immutable.
 *
 * <ul>
 *   <li>{@code file:/data/model.bin?path=pinned}, or just {@code /data/model.bin}: a file of a
 *       mounted file system; {@code path} is {@code auto}, {@code cufile}, {@code pinned} or {@code
 *       mmap}. The last question mark begins the options.
 *   <li>any {@link DeviceAddress}: a controller of our own, always by the path {@code direct}
 *   <li>{@code stripe:vfio:0000:01:00.0,vfio:0000:02:00.0;unit=1MiB}: addresses as above, over
 *       which the bytes are striped
 *   <li>{@code sim:file=disk.img#1:/models/a.gguf}: a file in a file system on any of these,
 *       written as in {@link FileAddress}; read without the kernel's file system, and read-only
 *   <li>{@code vfio:0000:01:00.0#1}: a whole partition of a controller or set; a partition of an
 *       image file, whose own name may end like this, only with {@link #on}
 *   <li>{@code replica:vfio:0000:01:00.0,vfio:0000:02:00.0}: addresses that all hold the same data
 * </ul>
 */
public final class StorageAddress {
  private static final String FILE = "file:";
  private static final String PATH = "path";
  private static final String NAME = "name";
  private static final String UNIT = ";unit=";

  /** What separates members: commas also separate a member's own options. */
  private static final Pattern MEMBER =
      Pattern.compile(",(?=(?:sim|vfio|vfio-user|sysfs|kmod|file):|sim(?:,|$)|\\.{0,2}/)");

  private final @Nullable DeviceAddress device;
  private final @Nullable Path file;
  private final @Nullable PathKind path;
  private final SequencedMap<String, String> options;
  private final List<StorageAddress> members;
  private final @Nullable SetShape shape;
  private final @Nullable FileAddress inside;
  private final @Nullable FileAddress partition;

  private StorageAddress(
      @Nullable DeviceAddress device,
      @Nullable Path file,
      @Nullable PathKind path,
      SequencedMap<String, String> options) {
    this.device = device;
    this.file = file;
    this.path = path;
    this.options = options;
    members = List.of();
    shape = null;
    inside = null;
    partition = null;
  }

  private StorageAddress(List<StorageAddress> members, SetShape shape, @Nullable PathKind path) {
    device = null;
    file = null;
    this.path = path;
    options = new LinkedHashMap<>();
    this.members = List.copyOf(members);
    this.shape = shape;
    inside = null;
    partition = null;
  }

  /** A file on a device if its path is given, else a partition. */
  private StorageAddress(FileAddress place, @Nullable PathKind path) {
    device = null;
    file = null;
    this.path = path;
    options = new LinkedHashMap<>();
    members = List.of();
    shape = null;
    inside = place.explicit() ? place : null;
    partition = place.explicit() ? null : place;
  }

  /**
   * Reads an address. Opening it shows whether there is such a file or device.
   *
   * @throws InvalidRequestException if it makes no sense
   */
  public static StorageAddress parse(String text) {
    FileAddress where = FileAddress.parse(text);
    if (where.explicit()) {
      return on(where);
    }
    if (where.partition() == 0) {
      return parseDevice(where.device());
    }
    StorageAddress device = parse(Volume.deviceText(where));
    return device.file == null ? new StorageAddress(where, device.path) : parseDevice(text);
  }

  /**
   * A file on a device if the path is given, a partition of it if the number is, or the device.
   *
   * @throws InvalidRequestException if the device makes no sense
   */
  public static StorageAddress on(FileAddress place) {
    StorageAddress device = parse(Volume.deviceText(place));
    return place.explicit() || place.partition() != 0
        ? new StorageAddress(place, device.path)
        : device;
  }

  /** An address without a file inside; no backslash hides one any more. */
  private static StorageAddress parseDevice(String text) {
    if (text.startsWith(SetShape.STRIPE) || text.startsWith(SetShape.REPLICA)) {
      return set(text);
    }
    boolean named = text.startsWith(FILE);
    if (named || text.startsWith("/") || text.startsWith("./") || text.startsWith("../")) {
      return file(named ? text.substring(FILE.length()) : text);
    }
    return new StorageAddress(DeviceAddress.parse(text), null, null, new LinkedHashMap<>());
  }

  private static StorageAddress set(String text) {
    boolean striped = text.startsWith(SetShape.STRIPE);
    String all = text.substring((striped ? SetShape.STRIPE : SetShape.REPLICA).length());
    SetShape shape = striped ? SetShape.striped() : SetShape.replicated();
    int semicolon = all.lastIndexOf(UNIT);
    if (semicolon >= 0) {
      if (!striped) {
        throw new InvalidRequestException("'" + text + "': replica:… takes no unit");
      }
      shape = SetShape.striped(ByteSize.parse(all.substring(semicolon + UNIT.length())));
      all = all.substring(0, semicolon);
    }
    List<StorageAddress> members =
        Arrays.stream(MEMBER.split(all)).map(StorageAddress::parse).toList();
    return set(members, shape);
  }

  /**
   * Several sources as one.
   *
   * @param members two or more; none is a set, and all have the same path
   */
  public static StorageAddress set(List<StorageAddress> members, SetShape shape) {
    if (members.size() < 2) {
      throw new InvalidRequestException("a set needs two or more members");
    }
    PathKind path = members.getFirst().path;
    for (StorageAddress m : members) {
      if (m.shape != null) {
        throw new InvalidRequestException("a set cannot have another set as member: " + m);
      }
      if (m.path != path) {
        throw new InvalidRequestException("all members of a set must have the same path: " + m);
      }
    }
    return new StorageAddress(members, shape, path);
  }

  /** A controller that somebody else has opened, by its name in messages. */
  static StorageAddress of(String controller) {
    return new StorageAddress(null, null, null, new LinkedHashMap<>(Map.of(NAME, controller)));
  }

  /** A set of controllers that somebody else has opened; one alone is a set, too. */
  static StorageAddress of(List<String> controllers, SetShape shape) {
    return new StorageAddress(controllers.stream().map(StorageAddress::of).toList(), shape, null);
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
        "no path '%s': the paths are auto, %s"
            .formatted(
                name,
                Arrays.stream(PathKind.values())
                    .map(PathKind::toString)
                    .collect(Collectors.joining(", "))));
  }

  /** The controller; null if it is a file or a set. */
  public @Nullable DeviceAddress device() {
    return device;
  }

  /** The file; null if it is a controller or a set. */
  public @Nullable Path file() {
    return file;
  }

  /** The file in a file system on a device; null if it is not one of those. */
  public @Nullable FileAddress inside() {
    return inside;
  }

  /** The whole partition of a device; null if it is not one of those. */
  public @Nullable FileAddress partition() {
    return partition;
  }

  /** The members of a set; empty if it is not a set. */
  public List<StorageAddress> members() {
    return members;
  }

  /** The shape of a set; null if it is not a set. */
  public @Nullable SetShape shape() {
    return shape;
  }

  /**
   * The controllers on which it lies: of a set, member by member. None for a file of a mounted file
   * system.
   */
  public List<DeviceAddress> devices() {
    StorageAddress below = below();
    if (below != null) {
      return below.devices();
    }
    return device == null
        ? members.stream().flatMap(m -> m.devices().stream()).toList()
        : List.of(device);
  }

  /** Whether each of several members has all of its bytes. */
  public boolean hasCopies() {
    StorageAddress below = below();
    return below == null ? shape != null && !shape.isStriped() : below.hasCopies();
  }

  /**
   * What its file system or partition is on; null if it is neither a file there nor a partition.
   */
  private @Nullable StorageAddress below() {
    FileAddress place = inside == null ? partition : inside;
    return place == null ? null : Volume.device(place);
  }

  /** The requested path; null: {@link GpuStorage} chooses. */
  public @Nullable PathKind path() {
    return path;
  }

  /** The other options of a file, e.g. {@code depth} of the path {@code pinned}. */
  public SequencedMap<String, String> options() {
    return Collections.unmodifiableSequencedMap(options);
  }

  /** Another file with the same options. */
  public StorageAddress at(Path other) {
    return new StorageAddress(null, other, path, options);
  }

  /** The same with another path; null: {@link GpuStorage} chooses. */
  public StorageAddress with(@Nullable PathKind other) {
    FileAddress place = inside == null ? partition : inside;
    if (place != null) {
      String on = parse(Volume.deviceText(place)).with(other).toString();
      return new StorageAddress(
          new FileAddress(on, place.partition(), place.path(), place.explicit()), other);
    }
    SetShape set = shape;
    return set == null
        ? new StorageAddress(device, file, other, options)
        : new StorageAddress(members.stream().map(m -> m.with(other)).toList(), set, other);
  }

  @Override
  public String toString() {
    if (device != null) {
      return device.toString();
    }
    if (inside != null) {
      return inside.toString();
    }
    if (partition != null) {
      return partition.device() + "#" + partition.partition();
    }
    if (shape != null) {
      return shape.text(members.stream().map(StorageAddress::toString).toList());
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
