package io.gpunvme.storage;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.MemberStats;
import io.gpunvme.storage.path.PathCounters;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.PathStats;
import io.gpunvme.storage.path.RequestShape;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.StorageFailures;
import io.gpunvme.storage.path.Verdict;
import io.gpunvme.storage.path.set.MemberPath;
import java.util.EnumMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** A source's paths, each opened when it is needed first. Safe for all threads. */
final class OpenPaths implements Registrar, AutoCloseable {
  private final Source source;
  private final @Nullable PathKind asked;
  private final List<Verdict> verdicts;
  private final Map<PathKind, DataPath> open = new EnumMap<>(PathKind.class);
  private final Map<PathKind, PathCounters> counters = new EnumMap<>(PathKind.class);

  /** Paths that said yes and then could not be opened, with the reason. */
  private final Map<PathKind, StorageException> failed = new EnumMap<>(PathKind.class);

  private final Set<DeviceBuffer> registered = new LinkedHashSet<>();

  /**
   * @param asked the only path to be used; null: the best for each request
   * @throws StorageException if no path that may be used is possible
   */
  OpenPaths(Source source, @Nullable PathKind asked) {
    this.source = source;
    this.asked = asked;
    verdicts = List.copyOf(source.verdicts());
    if (asked == null) {
      if (verdicts.stream().noneMatch(Verdict::automatic)) {
        throw impossible(verdicts);
      }
    } else {
      List<Verdict> own = verdicts.stream().filter(v -> v.kind() == asked).toList();
      if (own.stream().noneMatch(Verdict::possible)) {
        throw impossible(own);
      }
      // Whoever asks by name learns at once whether it works.
      get(asked);
    }
  }

  private StorageException impossible(List<Verdict> why) {
    String text =
        why.stream()
            .map(
                v ->
                    v.kind()
                        + ": "
                        + v.reason()
                        + (v.fix().isEmpty() ? "" : " (fix: " + v.fix() + ")"))
            .collect(Collectors.joining("; "));
    return new StorageException(
        Kind.UNSUPPORTED, source.name(), -1, -1, "no path is possible: " + text, null);
  }

  List<Verdict> verdicts() {
    return verdicts;
  }

  /**
   * The path for a request.
   *
   * @throws StorageException if none can be opened
   */
  DataPath choose(RequestShape shape) {
    if (asked != null) {
      return get(asked);
    }
    DataPath best = null;
    StorageException failure = null;
    for (Verdict v : verdicts) {
      if (v.automatic()) {
        try {
          DataPath path = get(v.kind());
          if (best == null || path.expected(shape) > best.expected(shape)) {
            best = path;
          }
        } catch (StorageException e) {
          failure = e;
        }
      }
    }
    if (best == null) {
      throw failure == null ? impossible(verdicts) : failure;
    }
    return best;
  }

  /**
   * A path of this kind.
   *
   * @throws StorageException if it cannot be opened
   */
  synchronized DataPath get(PathKind kind) {
    DataPath path = open.get(kind);
    if (path != null) {
      return path;
    }
    StorageException before = failed.get(kind);
    if (before != null) {
      throw before;
    }
    try {
      DataPath opened = source.open(kind);
      open.put(kind, opened);
      registered.forEach(buffer -> prepare(opened, buffer));
      return opened;
    } catch (StorageException e) {
      failed.put(kind, e);
      throw e;
    }
  }

  synchronized PathCounters counters(PathKind kind) {
    return counters.computeIfAbsent(kind, _ -> new PathCounters());
  }

  synchronized Map<PathKind, PathStats> stats() {
    Map<PathKind, PathStats> all = new EnumMap<>(PathKind.class);
    counters.forEach((kind, c) -> all.put(kind, c.snapshot()));
    return all;
  }

  /** Of all paths over members, added up by nobody: a set is usually read by one. */
  synchronized List<MemberStats> members() {
    return open.values().stream()
        .filter(MemberPath.class::isInstance)
        .flatMap(p -> ((MemberPath) p).members().stream())
        .toList();
  }

  synchronized Map<PathKind, String> modes() {
    Map<PathKind, String> all = new EnumMap<>(PathKind.class);
    open.forEach((kind, path) -> all.put(kind, path.mode()));
    failed.forEach((kind, e) -> all.put(kind, "not opened: " + e.getMessage()));
    return all;
  }

  /** An open path of a kind, or null. */
  synchronized @Nullable DataPath opened(PathKind kind) {
    return open.get(kind);
  }

  @Override
  public synchronized boolean register(DeviceBuffer buffer) {
    if (!registered.add(buffer)) {
      return false;
    }
    try {
      open.values().forEach(path -> path.register(buffer));
      return true;
    } catch (RuntimeException e) {
      deregister(buffer);
      throw e;
    }
  }

  /** A path that is opened late does without those that it cannot register. */
  private static void prepare(DataPath path, DeviceBuffer buffer) {
    try {
      path.register(buffer);
    } catch (StorageException e) {
      path.deregister(buffer);
    }
  }

  @Override
  public synchronized void deregister(DeviceBuffer buffer) {
    if (registered.remove(buffer)) {
      open.values().forEach(path -> path.deregister(buffer));
    }
  }

  /** As the source does it; true for those who want a value. */
  boolean flush() {
    try {
      source.flush();
      return true;
    } catch (RuntimeException e) {
      throw StorageFailures.of(e, source.name(), -1, -1);
    }
  }

  @Override
  public synchronized void close() {
    for (DeviceBuffer buffer : registered) {
      open.values().forEach(path -> path.deregister(buffer));
    }
    registered.clear();
    List<DataPath> paths = List.copyOf(open.values());
    open.clear();
    CloseAll steps = new CloseAll();
    paths.forEach(path -> steps.run(path::close));
    steps.run(source::close);
    steps.<RuntimeException>end();
  }
}
