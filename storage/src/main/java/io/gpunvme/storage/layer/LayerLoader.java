package io.gpunvme.storage.layer;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.layer.LayerException.Reason;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.StorageException;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Reads layers into a ring of slots, in the order in which they will be needed: while the program
 * uses one, the next ones are read, as many as there are slots.
 *
 * <p>{@link #prefetch} names layers, {@link #next} hands them out in that order, {@link
 * LoadedLayer#release} makes room for more. A slot is filled again only after it is released and
 * the work that was then in the releasing stream is over.
 *
 * <p>Safe for all threads; if several threads take layers, each layer goes to one of them. The
 * caller closes the storage. If it closes the storage first, layers that are not read by then fail.
 */
public final class LayerLoader implements AutoCloseable {
  /** Most slots of a loader. */
  public static final int MOST_SLOTS = 1024;

  private final LayerSource source;
  private final long maxLayerBytes;
  private final DeviceBuffer memory;
  private final long pinnedBytes;
  private final LayerRing<CudaStream> ring;

  /** What paths had read before this was opened. */
  private final Map<PathKind, Long> before;

  /** End {@link #load}s that are under way. */
  private final Set<Runnable> loads = ConcurrentHashMap.newKeySet();

  private volatile boolean closing;

  private LayerLoader(
      LayerSource source,
      long maxLayerBytes,
      int depth,
      DeviceBuffer memory,
      LayerOptions options) {
    this.source = source;
    this.maxLayerBytes = maxLayerBytes;
    this.memory = memory;
    before = source.readBytes();
    long slot = slotBytes(source, maxLayerBytes);
    LayerStreams<CudaStream> streams;
    GpuAccelerator gpu = source.accelerator().cuda().orElse(null);
    if (gpu != null) {
      source.prepare(memory, maxLayerBytes);
      CudaStreams own = new CudaStreams(gpu, () -> source.trial(memory, depth * slot), depth);
      pinnedBytes = own.pinnedBytes();
      streams = own;
    } else {
      streams = new NoStreams(source.name(), source.accelerator().name());
      pinnedBytes = 0;
    }
    ring =
        CloseAll.orClose(
            () -> new LayerRing<>(source, memory, slot, depth, streams, options), streams::close);
  }

  /**
   * Opens a loader with {@link LayerOptions#defaults}.
   *
   * @see #open(GpuStorage, long, int, LayerOptions)
   */
  public static LayerLoader open(GpuStorage storage, long maxLayerBytes, int pipelineDepth) {
    return open(storage, maxLayerBytes, pipelineDepth, LayerOptions.defaults());
  }

  /**
   * Allocates all memory and starts the thread that reads. On a GPU it reads the length of one
   * layer, or 256 MiB of a longer one, so that everything that a read needs is allocated before a
   * stream waits for it.
   *
   * @param storage to be closed after this
   * @param maxLayerBytes of the longest layer, &gt; 0
   * @param pipelineDepth slots, 1..1024: the number of layers that are loaded or being read at a
   *     time
   * @throws InvalidRequestException if a number is out of range, or more memory is needed than the
   *     options allow
   * @throws CudaException if the GPU has not enough memory
   */
  public static LayerLoader open(
      GpuStorage storage, long maxLayerBytes, int pipelineDepth, LayerOptions options) {
    return open(List.of(storage), maxLayerBytes, pipelineDepth, options);
  }

  /**
   * Opens a loader of layers that have pieces in several storages.
   *
   * @param storages of the same accelerator, one at least, to be closed after this
   * @see #open(GpuStorage, long, int, LayerOptions)
   */
  public static LayerLoader open(
      List<GpuStorage> storages, long maxLayerBytes, int pipelineDepth, LayerOptions options) {
    LayerSource source = new LayerSource(storages);
    long bytes = gpuBytes(source, maxLayerBytes, pipelineDepth);
    if (bytes > options.maxBytes()) {
      throw new InvalidRequestException(
          "%d slots for layers of %d bytes need %d bytes of %s, and the options allow %d; use fewer slots or allow more"
              .formatted(
                  pipelineDepth,
                  maxLayerBytes,
                  bytes,
                  source.accelerator().name(),
                  options.maxBytes()));
    }
    DeviceBuffer memory = source.accelerator().allocate(bytes);
    try {
      source.register(memory);
      return new LayerLoader(source, maxLayerBytes, pipelineDepth, memory, options);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, memory::close);
      throw e;
    }
  }

  /**
   * Bytes of the accelerator's memory that a loader takes.
   *
   * @throws InvalidRequestException if a number is out of range
   */
  public static long gpuBytes(GpuStorage storage, long maxLayerBytes, int pipelineDepth) {
    return gpuBytes(new LayerSource(List.of(storage)), maxLayerBytes, pipelineDepth);
  }

  private static long gpuBytes(LayerSource source, long maxLayerBytes, int pipelineDepth) {
    if (pipelineDepth < 1 || pipelineDepth > MOST_SLOTS) {
      throw new InvalidRequestException(
          "pipeline depth %d is outside 1..%d".formatted(pipelineDepth, MOST_SLOTS));
    }
    long slot = slotBytes(source, maxLayerBytes);
    if (slot > (Long.MAX_VALUE - slot) / pipelineDepth) {
      throw new InvalidRequestException(
          "%d slots for layers of %d bytes need 2^63 bytes or more"
              .formatted(pipelineDepth, maxLayerBytes));
    }
    // The last part is where streams are tried.
    return pipelineDepth * slot + (source.accelerator().gpu() ? source.unit() : 0);
  }

  private static long slotBytes(LayerSource source, long maxLayerBytes) {
    long unit = source.unit();
    if (maxLayerBytes <= 0 || maxLayerBytes > Long.MAX_VALUE - unit) {
      throw new InvalidRequestException("layers of at most " + maxLayerBytes + " bytes");
    }
    return Math.ceilDiv(maxLayerBytes, unit) * unit;
  }

  /** Bytes of the accelerator's memory that this takes, from its opening to its close. */
  public long gpuBytes() {
    return memory.size();
  }

  /** Bytes of pinned host memory that this takes. */
  public long pinnedBytes() {
    return pinnedBytes;
  }

  // ---- one layer

  /**
   * Reads one layer to the caller's own memory and waits for it; only that memory limits its
   * length. Meanwhile, {@link #next(CudaStream)} waits on the CPU.
   *
   * @throws InvalidRequestException if it is not inside the storage or the destination
   * @throws LayerException if it cannot be read
   */
  public void load(Layer layer, DeviceBuffer destination, long destinationOffset) {
    source.check(layer);
    if (destinationOffset < 0 || layer.bytes() > destination.size() - destinationOffset) {
      throw new InvalidRequestException(
          "%s does not fit into a buffer of %d bytes at %d"
              .formatted(layer, destination.size(), destinationOffset));
    }
    ring.beginLoad();
    try {
      CompletableFuture<?> read = source.read(layer, destination, destinationOffset);
      Runnable cancel = () -> read.cancel(true);
      loads.add(cancel);
      if (closing) {
        cancel.run();
      }
      try {
        read.join();
      } finally {
        loads.remove(cancel);
      }
    } catch (CompletionException e) {
      Throwable cause = e.getCause() == null ? e : e.getCause();
      throw new LayerException(
          layer, closing ? Reason.CLOSED : Reason.READ, String.valueOf(cause.getMessage()), cause);
    } finally {
      ring.endLoad();
    }
  }

  /** Reads bytes of the storage as {@link #load(Layer, DeviceBuffer, long)} does. */
  public void load(long offset, long bytes, DeviceBuffer destination, long destinationOffset) {
    load(new Layer("", offset, bytes), destination, destinationOffset);
  }

  // ---- many

  /**
   * Names the layers that are needed next, in this order, after those that were named before and
   * not taken yet. A layer may appear several times. Does not wait.
   *
   * @throws InvalidRequestException if one is longer than a slot or not inside the storage; then
   *     none of them is read
   */
  public void prefetch(List<Layer> order) {
    List<Layer> layers = List.copyOf(order);
    for (Layer layer : layers) {
      if (layer.bytes() > maxLayerBytes) {
        throw new InvalidRequestException(
            "%s is longer than %d bytes, the longest that this loader was opened for"
                .formatted(layer, maxLayerBytes));
      }
      source.check(layer);
    }
    ring.append(layers);
  }

  /** How many layers are still to be taken. */
  public int remaining() {
    return ring.remaining();
  }

  /**
   * The next layer, when its bytes are there.
   *
   * @throws java.util.NoSuchElementException if all were taken
   * @throws LayerException if it cannot be read; the next call gives the one after it
   * @throws IllegalStateException if taken layers hold all slots: no other layer could ever be read
   */
  public LoadedLayer next() {
    return loaded(ring.take());
  }

  /**
   * The next layer: later work in the stream sees its bytes. This thread does not wait for them. If
   * reading fails later, the stream goes on with undefined data, and {@link LoadedLayer#await} and
   * {@link #awaitTaken} throw the failure.
   *
   * <p>The stream may share one of the GPU's hardware queues with streams that reading needs. The
   * first call for a stream tests this, with a short read and while the stream is idle. If the
   * stream shares a queue, or is not idle yet, this waits for the bytes as {@link #next()} does.
   *
   * @throws StorageException if the accelerator has no streams
   * @throws java.util.NoSuchElementException as for {@link #next()}, as are the other exceptions
   */
  public LoadedLayer next(CudaStream compute) {
    return loaded(ring.take(compute));
  }

  private LoadedLayer loaded(Ticket<CudaStream> ticket) {
    return new LoadedLayer(ring, ticket, memory);
  }

  /**
   * Waits until the bytes of all layers that were taken for streams have arrived.
   *
   * @throws LayerException the first failure since the last call, unless {@link LoadedLayer#await}
   *     has thrown it already
   */
  public void awaitTaken() {
    ring.awaitTaken();
  }

  /** The statistics so far. */
  public LayerStats stats() {
    return ring.stats();
  }

  /** By which paths the storages were read since this was opened; opens nothing. */
  public Map<PathKind, PathUse> paths() {
    Map<PathKind, PathUse> paths = new EnumMap<>(PathKind.class);
    Map<PathKind, String> modes = source.modes();
    source
        .readBytes()
        .forEach(
            (path, bytes) -> {
              long own = bytes - before.getOrDefault(path, 0L);
              if (own > 0) {
                paths.put(path, new PathUse(own, modes.getOrDefault(path, "")));
              }
            });
    return paths;
  }

  /** Drops all layers that were not taken, and ends their reads. Taken layers stay as they are. */
  public void cancel() {
    ring.cancel();
  }

  /**
   * Ends all reads, lets streams that wait for layers go on, waits until they have used the layers
   * that they have, and frees the memory. Threads that wait in {@link #next()} get a {@link
   * LayerException}. Idempotent.
   */
  @Override
  public void close() {
    closing = true;
    loads.forEach(Runnable::run);
    ring.close();
  }

  static void closeQuietly(@Nullable AutoCloseable open) {
    try {
      if (open != null) {
        open.close();
      }
    } catch (Exception e) {
      // Of a context that failed or is closed, which has freed it itself.
    }
  }
}
