package io.gpunvme.capi;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.gpunvme.core.accel.DeviceBuffer;
import io.gpunvme.core.storage.StorageAddress;
import io.gpunvme.core.weights.TensorSlice;
import io.gpunvme.core.weights.TensorTarget;
import io.gpunvme.core.weights.Weights;
import io.gpunvme.core.weights.format.TensorInfo;
import io.gpunvme.nvme.InvalidRequestException;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import org.jspecify.annotations.Nullable;

/** A model that C has a handle of. Safe for all threads. */
final class Model implements AutoCloseable {
  private final Weights weights;
  private final Memory memory;
  private final List<String> names;

  private Model(Weights weights, Memory memory) {
    this.weights = weights;
    this.memory = memory;
    names = List.copyOf(weights.tensors().keySet());
  }

  static Model open(String uri, Memory memory) {
    return new Model(Weights.open(StorageAddress.parse(uri), memory.accelerator()), memory);
  }

  /** JSON: what there is, tensors in the order of their numbers. */
  String describe() {
    JsonObject all = new JsonObject();
    all.addProperty("name", weights.name());
    all.addProperty("format", weights.format());
    all.addProperty("bytes", weights.bytes());
    JsonObject metadata = new JsonObject();
    weights.metadata().forEach((key, value) -> metadata.addProperty(key, value.toString()));
    all.add("metadata", metadata);
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

  /** Reads all of them, and waits. */
  void read(List<Read> reads) {
    List<TensorTarget> targets = new ArrayList<>();
    List<Runnable> after = new ArrayList<>();
    List<Runnable> release = new ArrayList<>();
    try {
      for (Read r : reads) {
        add(r, targets, after, release);
      }
      weights.read(targets);
      after.forEach(Runnable::run);
    } finally {
      release.forEach(Runnable::run);
    }
  }

  private void add(
      Read r, List<TensorTarget> targets, List<Runnable> after, List<Runnable> release) {
    if (r.tensor < 0 || r.tensor >= names.size()) {
      throw new NoSuchElementException(
          "no tensor %d: %s has %d".formatted(r.tensor, weights.name(), names.size()));
    }
    String name = names.get(r.tensor);
    long bytes = weights.bytes(name, r.slice);
    if (bytes > r.capacity) {
      throw new InvalidRequestException(
          "tensor '%s' has %d bytes, and there is room for %d".formatted(name, bytes, r.capacity));
    }
    if (bytes == 0) {
      return;
    }
    Place place = memory.place(r.address, bytes);
    if (place != null) {
      release.add(place.release());
      targets.add(new TensorTarget(name, r.slice, place.buffer(), place.offset(r.address)));
      return;
    }
    DeviceBuffer copy = memory.accelerator().allocatePinned(bytes);
    release.add(copy::close);
    targets.add(new TensorTarget(name, r.slice, copy, 0));
    after.add(() -> copy.copyToHost(0, CTypes.at(r.address, bytes)));
  }

  @Override
  public void close() {
    weights.close();
  }
}
