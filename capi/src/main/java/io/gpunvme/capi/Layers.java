package io.gpunvme.capi;

import com.google.gson.JsonObject;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.layer.Layer;
import io.gpunvme.storage.layer.LayerException;
import io.gpunvme.storage.layer.LayerLoader;
import io.gpunvme.storage.layer.LayerStats;
import io.gpunvme.storage.layer.LoadedLayer;
import io.gpunvme.storage.layer.PathUse;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A layer loader that C has a handle of. Safe for all threads; a layer lives until the next. */
final class Layers implements AutoCloseable {
  private static final double NANOS = 1e9;

  private final Users users;
  private final Memory memory;
  private final String source;
  private final @Nullable Model model;
  private final LayerLoader loader;

  /** By their handles; guarded by this. */
  private final Map<Long, CudaStream> streams = new HashMap<>();

  /** Held by who takes layers: one at a time. */
  private final ReentrantLock taking = new ReentrantLock();

  /** The one that was taken last; changed by who takes. */
  private volatile @Nullable LoadedLayer current;

  /** Who uses it, if it was not taken for that stream; changed by who takes. */
  private volatile @Nullable CudaStream user;

  private volatile boolean closed;

  private Layers(
      Users users, Memory memory, String source, @Nullable Model model, LayerLoader loader) {
    this.users = users;
    this.memory = memory;
    this.source = source;
    this.model = model;
    this.loader = loader;
    try {
      users.add(this);
    } catch (ClosedHandleException e) {
      loader.close();
      throw e;
    }
  }

  /** Of ranges of a storage. */
  static Layers of(Storage storage, long maxLayerBytes, int depth) {
    GpuStorage open = storage.storage();
    return new Layers(
        storage.users(),
        storage.memory(),
        open.address().toString(),
        null,
        LayerLoader.open(open, maxLayerBytes, depth));
  }

  /** Of tensors of a model. */
  static Layers of(Model model, long maxLayerBytes, int depth) {
    return new Layers(
        model.users(), model.memory(), model.name(), model, model.layers(maxLayerBytes, depth));
  }

  void load(long offset, long bytes, long address) {
    if (bytes == 0) {
      return;
    }
    requireOpen();
    requireRanges();
    Place place = memory.place(address, bytes);
    if (place == null) {
      throw new InvalidRequestException(
          "%Xh is host memory: layers go to memory of the accelerator".formatted(address));
    }
    try {
      loader.load(offset, bytes, place.buffer(), place.offset(address));
    } finally {
      place.release().run();
    }
  }

  void prefetch(long[] offsets, long[] bytes) {
    requireOpen();
    requireRanges();
    List<Layer> order = new ArrayList<>();
    for (int i = 0; i < offsets.length; i++) {
      order.add(new Layer("", offsets[i], bytes[i]));
    }
    loader.prefetch(order);
  }

  private void requireRanges() {
    if (model != null) {
      throw new InvalidRequestException(
          "the layers of this loader are tensors of " + source + ": name them by tensors");
    }
  }

  /** Names one layer that is made of tensors; the addresses are places in the layer. */
  void prefetch(String name, List<Model.Read> tensors) {
    requireOpen();
    if (model == null) {
      throw new InvalidRequestException(
          "this loader was opened for ranges of " + source + ", not for tensors of a model");
    }
    loader.prefetch(List.of(model.layer(name, tensors)));
  }

  /** JSON of the layers that were given, and that no stream uses any more. */
  String stats() {
    requireOpen();
    LayerStats stats = loader.stats();
    JsonObject all = new JsonObject();
    all.addProperty("layers", stats.layers());
    all.addProperty("bytes", stats.bytes());
    all.addProperty("read_seconds", stats.readNanos() / NANOS);
    all.addProperty("wait_seconds", stats.waitNanos() / NANOS);
    JsonObject paths = new JsonObject();
    loader.paths().forEach((path, use) -> paths.add(path.toString(), json(use)));
    all.add("paths", paths);
    return all.toString();
  }

  private static JsonObject json(PathUse use) {
    JsonObject json = new JsonObject();
    json.addProperty("read_bytes", use.bytes());
    json.addProperty("mode", use.mode());
    return json;
  }

  /** Forgets what was named and not taken. */
  void cancel() {
    requireOpen();
    loader.cancel();
  }

  /** The next layer; the one before it is given back. */
  LoadedLayer next() {
    return take(loader::next);
  }

  /** The same for a stream. */
  LoadedLayer next(long streamHandle) {
    return take(() -> loader.next(stream(streamHandle)));
  }

  /**
   * The next layer, when its bytes are there, for work that will be in a stream: it is given back
   * when that is over.
   */
  LoadedLayer take(long streamHandle) {
    CudaStream stream = stream(streamHandle);
    taking.lock();
    try {
      LoadedLayer layer = take(loader::next);
      user = stream;
      return layer;
    } finally {
      taking.unlock();
    }
  }

  private LoadedLayer take(Supplier<LoadedLayer> next) {
    taking.lock();
    try {
      requireOpen();
      finish();
      LoadedLayer layer = next.get();
      current = layer;
      return layer;
    } catch (LayerException | IllegalStateException e) {
      requireOpen();
      throw e;
    } finally {
      taking.unlock();
    }
  }

  /**
   * Gives the layer back that was taken last.
   *
   * @throws LayerException if it was taken for a stream and could not be read: what the stream made
   *     of it is wrong
   */
  private void finish() {
    LoadedLayer layer = current;
    CudaStream stream = user;
    current = null;
    user = null;
    if (layer == null) {
      return;
    }
    if (stream != null) {
      layer.release(stream);
      return;
    }
    try {
      layer.await();
    } finally {
      layer.release();
    }
  }

  private synchronized CudaStream stream(long handle) {
    return streams.computeIfAbsent(handle, h -> memory.stream(h, source));
  }

  private void requireOpen() {
    if (closed) {
      throw new ClosedHandleException("this loader or what it reads was closed");
    }
  }

  /** Throws what {@link #next} would have told of the layer that was taken last. */
  @Override
  public void close() {
    users.remove(this);
    closed = true;
    try {
      LoadedLayer last = current;
      CudaStream stream = user;
      if (last != null && stream != null) {
        // The loader waits for what is in the stream.
        last.release(stream);
      } else if (last != null) {
        last.await();
      }
    } finally {
      loader.close();
      synchronized (this) {
        streams.values().forEach(CudaStream::close);
        streams.clear();
      }
    }
  }
}
