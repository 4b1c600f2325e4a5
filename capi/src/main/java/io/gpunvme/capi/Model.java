package io.gpunvme.capi;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.WorkScope;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.models.ShardRules;
import io.gpunvme.models.TensorPlace;
import io.gpunvme.models.TensorSlice;
import io.gpunvme.models.TensorTarget;
import io.gpunvme.models.Weights;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.layer.Layer;
import io.gpunvme.storage.layer.LayerLoader;
import io.gpunvme.storage.layer.LayerOptions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** A model that C has a handle of. Safe for all threads. */
final class Model implements AutoCloseable {
  /** Pinned memory for host targets, bytes; more only for a single tensor. */
  private static final long MOST_STAGED = 64 << 20;

  private static final long PAGE = 4096;

  private final Weights weights;
  private final Memory memory;
  private final List<String> names;
  private final Users users;

  /** The same model for memory of other GPUs, as it came; closed with this. */
  private final Map<Memory, Weights> others = new ConcurrentHashMap<>();

  private Model(Weights weights, Memory memory) {
    this.weights = weights;
    this.memory = memory;
    names = List.copyOf(weights.tensors().keySet());
    users = new Users("the model " + weights.name());
  }

  static Model open(String uri, Memory memory) {
    return new Model(
        Weights.open(StorageAddress.parse(uri), memory.accelerator(), Memory.OPTIONS), memory);
  }

  /** The weights that reach memory of an accelerator. */
  private Weights side(Memory of) {
    return of == memory ? weights : others.computeIfAbsent(of, this::on);
  }

  private Weights on(Memory other) {
    Weights theirs = weights.on(other.accelerator());
    return CloseAll.orClose(
        () -> {
          users.add(theirs);
          return theirs;
        },
        theirs::close);
  }

  String name() {
    return weights.name();
  }

  Memory memory() {
    return memory;
  }

  Users users() {
    return users;
  }

  LayerLoader layers(long maxLayerBytes, int depth) {
    return weights.layers(maxLayerBytes, depth, LayerOptions.defaults());
  }

  /** A layer of tensors, or of parts of them, each at the place that its address says. */
  Layer layer(String name, List<Read> reads) {
    List<TensorPlace> places = new ArrayList<>();
    for (Read r : reads) {
      bytes(r);
      places.add(new TensorPlace(names.get(r.tensor), r.slice, r.address));
    }
    return weights.layer(name, places);
  }

  /** JSON: what there is, tensors in the order of their numbers. */
  String describe() {
    JsonObject all = new JsonObject();
    all.addProperty("name", weights.name());
    all.addProperty("format", weights.format());
    all.addProperty("bytes", weights.bytes());
    all.addProperty("gpu", memory.accelerator().gpu());
    all.addProperty("accelerator", memory.name());
    JsonObject metadata = new JsonObject();
    weights.metadata().forEach((key, value) -> metadata.addProperty(key, value.toString()));
    all.add("metadata", metadata);
    JsonArray files = new JsonArray();
    weights.files().forEach(files::add);
    all.add("files", files);
    JsonArray tensors = new JsonArray();
    weights.tensors().values().forEach(t -> tensors.add(describe(t)));
    all.add("tensors", tensors);
    return all.toString();
  }

  /** JSON: what was read for each accelerator, by each path. */
  String stats() {
    JsonObject accelerators = new JsonObject();
    accelerators.add(memory.name(), stats(weights));
    others.forEach((of, theirs) -> accelerators.add(of.name(), stats(theirs)));
    JsonObject all = new JsonObject();
    all.add("accelerators", accelerators);
    return all.toString();
  }

  private static JsonObject stats(Weights side) {
    JsonObject paths = new JsonObject();
    side.readBytes()
        .forEach(
            (path, bytes) -> {
              JsonObject json = new JsonObject();
              json.addProperty("read_bytes", bytes.bytes());
              json.addProperty("overread_bytes", bytes.overread());
              paths.add(path.toString(), json);
            });
    JsonObject all = new JsonObject();
    all.add("paths", paths);
    return all;
  }

  /**
   * The dimension along which each tensor is divided into parts, in the order of their numbers;
   * {@link ShardRules#WHOLE} for those that are not.
   *
   * @param rules one a line, as {@link ShardRules#parse} reads them; null: {@code wanted}, checked
   * @param parts above 0
   */
  int[] shards(@Nullable String rules, int[] wanted, int parts) {
    if (wanted.length != names.size() || parts < 1) {
      throw new InvalidRequestException(
          "%s has %d tensors to divide into 1 part at least, and this is for %d tensors and %d"
              .formatted(weights.name(), names.size(), wanted.length, parts));
    }
    ShardRules all;
    if (rules == null) {
      Map<String, Integer> given = new HashMap<>();
      for (int i = 0; i < wanted.length; i++) {
        given.put(names.get(i), Math.max(ShardRules.WHOLE, wanted[i]));
      }
      all = ShardRules.of(given);
    } else {
      all = ShardRules.parse(rules.lines().toList());
    }
    return weights.tensors().values().stream().mapToInt(t -> all.dimension(t, parts)).toArray();
  }

  private JsonObject describe(TensorInfo t) {
    JsonObject json = new JsonObject();
    json.addProperty("name", t.name());
    json.addProperty("dtype", t.type().toString());
    JsonArray shape = new JsonArray();
    for (long d : t.shape()) {
      shape.add(d);
    }
    json.add("shape", shape);
    json.addProperty("offset", t.offset());
    json.addProperty("bytes", t.bytes());
    json.addProperty("file", weights.file(t.name()));
    return json;
  }

  /**
   * A tensor, or part of one, and where it goes.
   *
   * @param slice null: all of it
   */
  record Read(int tensor, @Nullable TensorSlice slice, long address, long capacity) {}

  /** One whose address transfers do not reach. */
  private record Staged(Read read, long bytes) {
    long room() {
      return Math.ceilDiv(bytes, PAGE) * PAGE;
    }
  }

  /** Reads all of them, those of several GPUs at the same time, and waits. */
  void read(List<Read> reads) {
    Map<Memory, List<TensorTarget>> targets = new LinkedHashMap<>();
    List<Staged> staged = new ArrayList<>();
    List<Runnable> release = new ArrayList<>();
    try {
      for (Read r : reads) {
        long bytes = bytes(r);
        Place place = bytes == 0 ? null : memory.find(r.address, bytes);
        if (place != null) {
          release.add(place.release());
          targets
              .computeIfAbsent(place.memory(), _ -> new ArrayList<>())
              .add(target(r, place.buffer(), place.offset(r.address)));
        } else if (bytes > 0) {
          staged.add(new Staged(r, bytes));
        }
      }
      read(targets);
    } finally {
      release.forEach(Runnable::run);
    }
    int done = 0;
    while (done < staged.size()) {
      int end = done;
      long room = 0;
      do {
        room += staged.get(end).room();
        end++;
      } while (end < staged.size() && room + staged.get(end).room() <= MOST_STAGED);
      read(staged.subList(done, end), room);
      done = end;
    }
  }

  /** Each GPU's by a thread of its own. The first failure ends all. */
  private void read(Map<Memory, List<TensorTarget>> targets) {
    if (targets.size() <= 1) {
      targets.forEach((of, theirs) -> side(of).read(theirs));
      return;
    }
    AtomicBoolean ends = new AtomicBoolean();
    List<Runnable> parts = new ArrayList<>();
    targets.forEach(
        (of, theirs) -> {
          Weights side = side(of);
          parts.add(
              () -> {
                try {
                  side.read(theirs, ends::get);
                } catch (RuntimeException | Error e) {
                  ends.set(true);
                  throw e;
                }
              });
        });
    WorkScope.rethrow(WorkScope.all(HostTransfer::startThread, parts, () -> {}));
  }

  private TensorTarget target(Read r, DeviceBuffer buffer, long offset) {
    return new TensorTarget(names.get(r.tensor), r.slice, buffer, offset);
  }

  /** By way of pinned memory. */
  private void read(List<Staged> group, long room) {
    try (DeviceBuffer copy = memory.accelerator().allocatePinned(room)) {
      List<TensorTarget> targets = new ArrayList<>();
      long at = 0;
      for (Staged s : group) {
        targets.add(target(s.read, copy, at));
        at += s.room();
      }
      weights.read(targets);
      at = 0;
      for (Staged s : group) {
        copy.copyToHost(at, CTypes.at(s.read.address, s.bytes));
        at += s.room();
      }
    }
  }

  /** Of a read, which is checked. */
  private long bytes(Read r) {
    if (r.tensor < 0 || r.tensor >= names.size()) {
      throw new NoSuchElementException(
          "no tensor %d: %s has %d".formatted(r.tensor, weights.name(), names.size()));
    }
    String name = names.get(r.tensor);
    long bytes = weights.bytes(name, r.slice);
    if (bytes > r.capacity) {
      throw new InvalidRequestException(
          "tensor '%s' has %d bytes, but there is room for only %d"
              .formatted(name, bytes, r.capacity));
    }
    return bytes;
  }

  @Override
  public void close() throws Exception {
    List<AutoCloseable> all = users.end();
    all.add(weights);
    CloseAll.each(all, AutoCloseable::close);
  }
}
