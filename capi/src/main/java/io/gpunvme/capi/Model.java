package io.gpunvme.capi;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.DeviceBuffer;
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
import java.util.List;
import java.util.NoSuchElementException;
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

  private JsonObject describe(TensorInfo t) {
    JsonObject json = new JsonObject();
    json.addProperty("name", t.name());
    json.addProperty("dtype", t.type().toString());
    JsonArray shape = new JsonArray();
    for (long d : t.shape()) {
      shape.add(d);
    }
    json.add("shape", shape);
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

  /** Reads all of them, and waits. */
  void read(List<Read> reads) {
    List<TensorTarget> targets = new ArrayList<>();
    List<Staged> staged = new ArrayList<>();
    List<Runnable> release = new ArrayList<>();
    try {
      for (Read r : reads) {
        long bytes = bytes(r);
        Place place = bytes == 0 ? null : memory.place(r.address, bytes);
        if (place != null) {
          release.add(place.release());
          targets.add(target(r, place.buffer(), place.offset(r.address)));
        } else if (bytes > 0) {
          staged.add(new Staged(r, bytes));
        }
      }
      weights.read(targets);
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
