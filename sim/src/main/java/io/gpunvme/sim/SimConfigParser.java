package io.gpunvme.sim;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Reason;
import io.gpunvme.nvme.spec.Vs;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import java.util.function.ObjIntConsumer;
import java.util.function.ObjLongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Reads device options: {@code size=1GiB,lba=4096,file=/tmp/disk.img,latency=20us}.
 *
 * <p>{@link #keys} lists the keys. {@code size}, {@code lba}, {@code media}, {@code file} and
 * {@code readonly} are about namespace 1; with {@code ns2.} in front about namespace 2, and so on
 * without gaps. The character after a backslash is taken literally, so a path may contain a comma.
 */
public final class SimConfigParser {
  private static final Map<String, String> NAMESPACE_KEYS = namespaceKeys();
  private static final Map<String, Key> CONTROLLER_KEYS = controllerKeys();

  /** Applies one value to a builder. */
  @FunctionalInterface
  private interface Setting {
    void apply(SimConfigBuilder b, String key, String value);
  }

  /** A key of the controller: what it means, and what it does. */
  private record Key(String help, Setting setting) {}

  private SimConfigParser() {}

  /** The meaning of each key (defaults in brackets), in the order to print them. */
  public static Map<String, String> keys() {
    Map<String, String> all = new LinkedHashMap<>(NAMESPACE_KEYS);
    CONTROLLER_KEYS.forEach((key, meaning) -> all.put(key, meaning.help()));
    return all;
  }

  /**
   * Reads options on top of the defaults.
   *
   * @throws InvalidRequestException naming the key that is unknown, repeated or has a wrong value
   */
  public static SimConfigBuilder parse(String text) {
    SimConfigBuilder builder = SimConfig.builder();
    NavigableMap<Integer, Map<String, String>> namespaces = new TreeMap<>();
    Map<String, String> given = new HashMap<>();
    for (String pair : split(text)) {
      int equals = pair.indexOf('=');
      if (equals < 1) {
        throw new InvalidRequestException("'" + pair + "' is not key=value");
      }
      String key = pair.substring(0, equals);
      String value = pair.substring(equals + 1);
      if (given.put(key, value) != null) {
        throw new InvalidRequestException(key + "= is given twice");
      }
      Key known = CONTROLLER_KEYS.get(key);
      if (known != null) {
        known.setting().apply(builder, key, value);
      } else {
        namespaceKey(namespaces, key, value);
      }
    }
    requireHostMemoryOrder(given);
    addNamespaces(builder, namespaces);
    return builder;
  }

  private static void requireHostMemoryOrder(Map<String, String> given) {
    long least = TextValues.size("hmmin", given.getOrDefault("hmmin", "0"));
    long preferred = TextValues.size("hmpre", given.getOrDefault("hmpre", "0"));
    if (least > preferred) {
      throw new InvalidRequestException(
          "hmmin=" + least + " is above hmpre=" + preferred + " (bytes)");
    }
  }

  private static List<String> split(String text) {
    List<String> pairs = new ArrayList<>();
    if (text.isBlank()) {
      return pairs;
    }
    StringBuilder pair = new StringBuilder();
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '\\' && i + 1 < text.length()) {
        pair.append(text.charAt(++i));
      } else if (c == ',') {
        pairs.add(pair.toString());
        pair.setLength(0);
      } else {
        pair.append(c);
      }
    }
    pairs.add(pair.toString());
    return pairs;
  }

  private static void namespaceKey(
      Map<Integer, Map<String, String>> namespaces, String key, String value) {
    int nsid = 1;
    String name = key;
    if (key.matches("ns[1-9]\\d{0,3}\\..+")) {
      nsid = Integer.parseInt(key.substring(2, key.indexOf('.')));
      name = key.substring(key.indexOf('.') + 1);
    }
    if (!NAMESPACE_KEYS.containsKey(name)) {
      throw new InvalidRequestException(
          "unknown key '" + key + "'; known: " + String.join(", ", keys().keySet()));
    }
    Map<String, String> values = namespaces.computeIfAbsent(nsid, n -> new LinkedHashMap<>());
    if (values.put(name, value) != null) {
      throw new InvalidRequestException(key + "= is given twice");
    }
  }

  private static void addNamespaces(
      SimConfigBuilder builder, NavigableMap<Integer, Map<String, String>> namespaces) {
    if (namespaces.isEmpty()) {
      return;
    }
    for (int nsid = 1; nsid <= namespaces.lastKey(); nsid++) {
      if (nsid > 1 && !namespaces.containsKey(nsid)) {
        throw new InvalidRequestException(
            "ns" + nsid + ". is missing: namespaces are numbered without gaps");
      }
      builder.namespace(namespace(namespaces.getOrDefault(nsid, Map.of())));
    }
  }

  private static NamespaceConfig namespace(Map<String, String> values) {
    String file = values.get("file");
    NamespaceConfig.Kind kind = kind(values.get("media"), file != null);
    String size = values.get("size");
    long bytes = kind.inFile() ? 0 : 64L << 20;
    if (size != null) {
      bytes = TextValues.size("size", size);
    }
    long lba = TextValues.size("lba", values.getOrDefault("lba", "512"));
    boolean readOnly = TextValues.flag("readonly", values.getOrDefault("readonly", "off"));
    return new NamespaceConfig(
        kind, bytes, (int) Math.min(lba, Integer.MAX_VALUE), path(file), readOnly);
  }

  private static NamespaceConfig.Kind kind(@Nullable String media, boolean hasFile) {
    if (media == null) {
      return hasFile ? NamespaceConfig.Kind.FILE : NamespaceConfig.Kind.RAM;
    }
    return switch (media) {
      case "ram" -> NamespaceConfig.Kind.RAM;
      case "file" -> NamespaceConfig.Kind.FILE;
      case "mapped" -> NamespaceConfig.Kind.MAPPED;
      case "null" -> NamespaceConfig.Kind.NULL;
      default -> throw TextValues.bad("media", media, "ram, file, mapped or null");
    };
  }

  private static @Nullable Path path(@Nullable String file) {
    try {
      return file == null ? null : Path.of(file);
    } catch (InvalidPathException e) {
      throw TextValues.bad("file", String.valueOf(file), "a path: " + e.getReason());
    }
  }

  private static Vs version(String key, String value) {
    return switch (value) {
      case "1.4" -> Vs.V1_4;
      case "2.0" -> Vs.V2_0;
      default -> throw TextValues.bad(key, value, "1.4 or 2.0");
    };
  }

  private static void faults(SimConfigBuilder b, String key, String value) {
    String text = value;
    if (value.startsWith("@")) {
      try {
        text = Files.readString(Path.of(value.substring(1)));
      } catch (NoSuchFileException e) {
        throw new InvalidRequestException(e.getFile() + ": no such file or folder");
      } catch (IOException e) {
        throw TextValues.bad(key, value, "a file that can be read: " + Reason.of(e));
      } catch (InvalidPathException e) {
        throw TextValues.bad(key, value, "the name of a file: " + e.getReason());
      }
    }
    FaultSyntax.parse(text).forEach(b::fault);
  }

  private static Map<String, String> namespaceKeys() {
    Map<String, String> k = new LinkedHashMap<>();
    k.put("size", "namespace size (64MiB; a file's own size if it exists)");
    k.put("lba", "bytes per logical block (512)");
    k.put("media", "ram, file, mapped (a file, by mmap) or null (ram; file with file=)");
    k.put("file", "backing file, created sparse if size= is given");
    k.put("readonly", "write-protected namespace (off)");
    return k;
  }

  private static Map<String, Key> controllerKeys() {
    Map<String, Key> keys = new LinkedHashMap<>();
    limits(keys);
    behaviour(keys);
    capabilities(keys);
    identity(keys);
    return keys;
  }

  private static void limits(Map<String, Key> keys) {
    keys.put(
        "nn",
        new Key(
            "highest valid namespace identifier (as many as configured)",
            (b, k, v) -> b.maxNamespaces(positive(k, v))));
    size(keys, "mdts", "largest transfer, 0 for no limit (512KiB)", SimConfigBuilder::maxTransfer);
    number(keys, "mqes", "largest queue, 0-based (1023)", SimConfigBuilder::mqes);
    number(keys, "queues", "I/O queue pairs (64)", SimConfigBuilder::ioQueues);
    number(keys, "vectors", "MSI-X vectors (65)", SimConfigBuilder::vectors);
    number(keys, "dstrd", "doorbell stride (0)", SimConfigBuilder::dstrd);
    number(keys, "to", "ready timeout in 500 ms units (2)", SimConfigBuilder::to);
    number(keys, "mpsmax", "largest memory page, 4KiB << this (4)", SimConfigBuilder::mpsMax);
    number(keys, "addressbits", "width of a bus address (64)", SimConfigBuilder::addressBits);
    number(keys, "aerl", "event requests held, 0-based (3)", SimConfigBuilder::aerl);
    number(keys, "acl", "aborts outstanding, 0-based (3)", SimConfigBuilder::acl);
    number(keys, "elpe", "error log entries, 0-based (63)", SimConfigBuilder::elpe);
  }

  private static void behaviour(Map<String, Key> keys) {
    duration(keys, "ready", "time to become ready (0)", SimConfigBuilder::readyNanos);
    duration(keys, "shutdown", "time to shut down (0)", SimConfigBuilder::shutdownNanos);
    duration(
        keys,
        "latency",
        "time from fetch to execution of an I/O command (50us)",
        SimConfigBuilder::latencyNanos);
    number(
        keys,
        "workers",
        "worker threads; 0: the caller polls (half of the processors, 4 at most)",
        SimConfigBuilder::workers);
    flag(keys, "shuffle", "out-of-order completion (off)", SimConfigBuilder::outOfOrder);
    flag(
        keys,
        "strict",
        "refuse reserved fields that are not zero, and what else careless hosts send (on)",
        SimConfigBuilder::strict);
    keys.put("faults", new Key("fault rules separated by ';', or @file", SimConfigParser::faults));
    keys.put(
        "seed",
        new Key("seed of every random decision (1)", (b, k, v) -> b.seed(TextValues.number(k, v))));
  }

  private static void capabilities(Map<String, Key> keys) {
    keys.put("version", new Key("1.4 or 2.0 (1.4)", (b, k, v) -> b.version(version(k, v))));
    flag(keys, "vwc", "volatile write cache (on)", SimConfigBuilder::volatileWriteCache);
    flag(keys, "sgl", "scatter gather lists (on)", SimConfigBuilder::sgl);
    flag(keys, "dbbuf", "shadow doorbells (on)", SimConfigBuilder::dbbuf);
    flag(keys, "cqr", "queues must be contiguous (on)", SimConfigBuilder::contiguousQueues);
    flag(keys, "nssr", "subsystem reset register (on)", SimConfigBuilder::subsystemReset);
    flag(
        keys,
        "nsmgmt",
        "namespace management and attachment (off)",
        SimConfigBuilder::namespaceManagement);
    flag(keys, "kas", "keep alive (off)", SimConfigBuilder::keepAlive);
    size(keys, "cmb", "controller memory buffer, bytes (0)", SimConfigBuilder::cmbBytes);
    keys.put(
        "hmpre",
        new Key("preferred host memory buffer (0)", (b, k, v) -> b.hmbPreferred(pages(k, v))));
    keys.put(
        "hmmin", new Key("least host memory buffer (0)", (b, k, v) -> b.hmbMinimum(pages(k, v))));
  }

  private static void identity(Map<String, Key> keys) {
    keys.put("serial", new Key("serial number", (b, k, v) -> b.serial(v)));
    keys.put("model", new Key("model number", (b, k, v) -> b.model(v)));
    keys.put("firmware", new Key("firmware revision", (b, k, v) -> b.firmware(v)));
  }

  private static void number(
      Map<String, Key> keys, String key, String help, ObjIntConsumer<SimConfigBuilder> to) {
    keys.put(
        key, new Key(help, (b, k, v) -> to.accept(b, TextValues.number(k, v, Integer.MAX_VALUE))));
  }

  private static void size(
      Map<String, Key> keys, String key, String help, ObjLongConsumer<SimConfigBuilder> to) {
    keys.put(key, new Key(help, (b, k, v) -> to.accept(b, TextValues.size(k, v))));
  }

  private static void duration(
      Map<String, Key> keys, String key, String help, ObjLongConsumer<SimConfigBuilder> to) {
    keys.put(key, new Key(help, (b, k, v) -> to.accept(b, TextValues.duration(k, v))));
  }

  private static void flag(
      Map<String, Key> keys, String key, String help, BiConsumer<SimConfigBuilder, Boolean> to) {
    keys.put(key, new Key(help, (b, k, v) -> to.accept(b, TextValues.flag(k, v))));
  }

  private static int positive(String key, String value) {
    int number = TextValues.number(key, value, SimConfig.MAX_NAMESPACES);
    if (number == 0) {
      throw TextValues.bad(key, value, "a whole number from 1 to " + SimConfig.MAX_NAMESPACES);
    }
    return number;
  }

  private static int pages(String key, String value) {
    long bytes = TextValues.size(key, value);
    if (bytes % SimConfig.PAGE != 0 || bytes / SimConfig.PAGE > Integer.MAX_VALUE) {
      throw TextValues.bad(key, value, "a size that is a multiple of 4KiB");
    }
    return (int) (bytes / SimConfig.PAGE);
  }
}
