package io.gpunvme.capi;

import io.gpunvme.core.layer.Layer;
import io.gpunvme.core.layer.LayerLoader;
import io.gpunvme.core.layer.LoadedLayer;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.nvme.InvalidRequestException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A layer loader that C has a handle of. Safe for all threads; layers are taken by one. */
final class Layers implements AutoCloseable {
  private final Storage storage;
  private final LayerLoader loader;

  /** By their handles; guarded by this. */
  private final Map<Long, CudaStream> streams = new HashMap<>();

  private @Nullable LoadedLayer current;

  Layers(Storage storage, long maxLayerBytes, int depth) {
    this.storage = storage;
    loader = LayerLoader.open(storage.storage(), maxLayerBytes, depth);
    storage.addUser(this);
  }

  void load(long offset, long bytes, long address) {
    if (bytes == 0) {
      return;
    }
    Place place = storage.memory().place(address, bytes);
    if (place == null) {
      throw new InvalidRequestException(
          "%Xh is host memory: layers are loaded to memory of the accelerator".formatted(address));
    }
    try {
      loader.load(offset, bytes, place.buffer(), place.offset(address));
    } finally {
      place.release().run();
    }
  }

  void prefetch(long[] offsets, long[] bytes) {
    List<Layer> order = new ArrayList<>();
    for (int i = 0; i < offsets.length; i++) {
      order.add(new Layer("", offsets[i], bytes[i]));
    }
    loader.prefetch(order);
  }

  /** The next layer; gives the one before back. */
  LoadedLayer next() {
    giveBack();
    return keep(loader.next());
  }

  /** The same for a stream. */
  LoadedLayer next(long streamHandle) {
    giveBack();
    return keep(loader.next(stream(streamHandle)));
  }

  private synchronized LoadedLayer keep(LoadedLayer layer) {
    current = layer;
    return layer;
  }

  private synchronized void giveBack() {
    LoadedLayer layer = current;
    current = null;
    if (layer != null) {
      layer.release();
    }
  }

  private synchronized CudaStream stream(long handle) {
    return streams.computeIfAbsent(handle, storage::stream);
  }

  @Override
  public void close() {
    storage.removeUser(this);
    loader.close();
    synchronized (this) {
      streams.values().forEach(CudaStream::close);
      streams.clear();
    }
  }
}
