package io.gpunvme.storage;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.MemberStats;
import io.gpunvme.storage.path.PathCounters;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.PathStats;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.ReadBytes;
import io.gpunvme.storage.path.RequestShape;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.StorageFailures;
import io.gpunvme.storage.path.Verdict;
import io.gpunvme.storage.path.set.MemberPath;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** A source's paths, each opened when it is needed first. Safe for all threads. */
final class OpenPaths implements Registrar, AutoCloseable {
  private final Source source;
  private final @Nullable PathKind asked;
  private final List<Verdict> verdicts;
  private final Map<PathKind, DataPath> open = new EnumMap<>(PathKind.class);

  /** The same for those who do not want to wait for the monitor, by ordinal. */
  private final AtomicReferenceArray<@Nullable DataPath> quick =
      new AtomicReferenceArray<>(PathKind.values().length);

  private final SmallReads small;
  private final Map<PathKind, PathCounters> counters = new EnumMap<>(PathKind.class);
  private final AtomicReferenceArray<@Nullable PathCounters> quickCounters =
      new AtomicReferenceArray<>(PathKind.values().length);

  /** Paths that said yes and then could not be opened, with the reason. */
  private final Map<PathKind, StorageException> failed = new EnumMap<>(PathKind.class);

  private final Map<DeviceBuffer, Runnable> registered = new LinkedHashMap<>();

  /**
   * @param asked the only path to be used; null: the best for each request
   * @throws StorageException if no path that may be used is possible
   */
  OpenPaths(Source source, @Nullable PathKind asked) {
    this.source = source;
    this.asked = asked;
    verdicts = List.copyOf(source.verdicts());
    small =
        new SmallReads(
            asked != null
                ? List.of(asked)
                : verdicts.stream().filter(Verdict::automatic).map(Verdict::kind).toList());
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
    if (isSmall(shape.direction(), shape.ranges(), shape.bytes())) {
      return get(small.best(shape.bytes()));
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

  private static boolean isSmall(Direction direction, int ranges, long bytes) {
    return direction == Direction.READ && ranges == 1 && bytes <= SmallReads.MOST_BYTES;
  }

  /**
   * The path for ranges, which are looked up in the page cache only if they are long or many.
   *
   * @param bytes in all of them
   * @throws StorageException if none can be opened
   */
  DataPath choose(Direction direction, List<Range> ranges, long bytes) {
    if (asked != null) {
      return get(asked);
    }
    return isSmall(direction, ranges.size(), bytes)
        ? chooseSmall(bytes)
        : choose(new RequestShape(direction, ranges.size(), bytes, source.resident(ranges)));
  }

  /** The same for one range. */
  DataPath choose(
      Direction direction, long offset, DeviceBuffer buffer, long bufferOffset, long length) {
    if (asked != null) {
      return get(asked);
    }
    return isSmall(direction, 1, length)
        ? chooseSmall(length)
        : choose(direction, List.of(new Range(offset, buffer, bufferOffset, length)), length);
  }

  private DataPath chooseSmall(long bytes) {
    while (true) {
      PathKind kind = small.choose(bytes);
      try {
        return get(kind);
      } catch (StorageException e) {
        if (!small.drop(kind)) {
          throw e;
        }
      }
    }
  }

  /** A transfer has succeeded. */
  void measured(Direction direction, int ranges, long bytes, PathKind kind, long nanos) {
    if (isSmall(direction, ranges, bytes)) {
      small.measured(kind, bytes, nanos);
    }
  }

  /**
   * A path of this kind.
   *
   * @throws StorageException if it cannot be opened
   */
  DataPath get(PathKind kind) {
    DataPath there = quick.get(kind.ordinal());
    return there == null ? open(kind) : there;
  }

  private synchronized DataPath open(PathKind kind) {
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
      registered.keySet().forEach(buffer -> prepare(opened, buffer));
      quick.set(kind.ordinal(), opened);
      return opened;
    } catch (StorageException e) {
      failed.put(kind, e);
      throw e;
    } catch (RuntimeException e) {
      throw StorageFailures.of(e, source.name(), -1, -1);
    }
  }

  PathCounters counters(PathKind kind) {
    PathCounters there = quickCounters.get(kind.ordinal());
    return there == null ? newCounters(kind) : there;
  }

  private synchronized PathCounters newCounters(PathKind kind) {
    PathCounters own = counters.computeIfAbsent(kind, _ -> new PathCounters());
    quickCounters.set(kind.ordinal(), own);
    return own;
  }

  synchronized Map<PathKind, PathStats> stats() {
    Map<PathKind, PathStats> all = new EnumMap<>(PathKind.class);
    counters.forEach((kind, c) -> all.put(kind, c.snapshot()));
    return all;
  }

  synchronized Map<PathKind, ReadBytes> readBytes() {
    Map<PathKind, ReadBytes> all = new EnumMap<>(PathKind.class);
    counters.forEach((kind, c) -> all.put(kind, c.bytes()));
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

  /** Of the paths that are open; true for those who want a value. The driver may make this wait. */
  boolean takeStaging() {
    List<DataPath> all;
    synchronized (this) {
      all = List.copyOf(open.values());
    }
    try {
      all.forEach(DataPath::takeStaging);
      return true;
    } catch (RuntimeException e) {
      throw StorageFailures.of(e, source.name(), -1, -1);
    }
  }

  @Override
  public synchronized boolean register(DeviceBuffer buffer) {
    if (registered.containsKey(buffer)) {
      return false;
    }
    registered.put(buffer, buffer.beforeFree(() -> deregister(buffer)));
    try {
      open.values().forEach(path -> path.register(buffer));
      return true;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> deregister(buffer));
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
    Runnable forget = registered.remove(buffer);
    if (forget != null) {
      forget.run();
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
    List.copyOf(registered.keySet()).forEach(this::deregister);
    List<DataPath> paths = List.copyOf(open.values());
    open.clear();
    for (int i = 0; i < quick.length(); i++) {
      quick.set(i, null);
    }
    CloseAll steps = new CloseAll();
    paths.forEach(path -> steps.run(path::close));
    steps.run(source::close);
    steps.<RuntimeException>end();
  }
}
