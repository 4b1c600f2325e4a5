package io.gpunvme.capi;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.storage.layer.Layer;
import io.gpunvme.storage.layer.LayerException;
import io.gpunvme.storage.layer.LayerLoader;
import io.gpunvme.storage.layer.LoadedLayer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A layer loader that C has a handle of. Safe for all threads; a layer lives until the next. */
final class Layers implements AutoCloseable {
  private final Storage storage;
  private final LayerLoader loader;

  /** By their handles; guarded by this. */
  private final Map<Long, CudaStream> streams = new HashMap<>();

  /** Held by who takes layers: one at a time. */
  private final ReentrantLock taking = new ReentrantLock();

  /** The one that was taken last; changed by who takes. */
  private volatile @Nullable LoadedLayer current;

  private volatile boolean closed;

  Layers(Storage storage, long maxLayerBytes, int depth) {
    this.storage = storage;
    loader = LayerLoader.open(storage.storage(), maxLayerBytes, depth);
    try {
      storage.addUser(this);
    } catch (ClosedHandleException e) {
      loader.close();
      throw e;
    }
  }

  void load(long offset, long bytes, long address) {
    if (bytes == 0) {
      return;
    }
    requireOpen();
    Place place = storage.memory().place(address, bytes);
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
    List<Layer> order = new ArrayList<>();
    for (int i = 0; i < offsets.length; i++) {
      order.add(new Layer("", offsets[i], bytes[i]));
    }
    loader.prefetch(order);
  }

  /** The next layer; the one before it is given back. */
  LoadedLayer next() {
    return take(loader::next);
  }

  /** The same for a stream. */
  LoadedLayer next(long streamHandle) {
    return take(() -> loader.next(stream(streamHandle)));
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
    current = null;
    if (layer != null) {
      try {
        layer.await();
      } finally {
        layer.release();
      }
    }
  }

  private synchronized CudaStream stream(long handle) {
    return streams.computeIfAbsent(handle, storage::stream);
  }

  private void requireOpen() {
    if (closed) {
      throw new ClosedHandleException("this loader or its storage was closed");
    }
  }

  /** Throws what {@link #next} would have told of the layer that was taken last. */
  @Override
  public void close() {
    storage.removeUser(this);
    closed = true;
    try {
      LoadedLayer last = current;
      if (last != null) {
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
