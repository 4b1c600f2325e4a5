package io.gpunvme.storage.layer;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.TransferResult;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** The storages that the pieces of layers are read from. Safe for all threads. */
final class LayerSource {
  private static final int PAGE = 4096;

  /** A read that is longer needs no more memory: staging and queues are all in use. */
  private static final long LONGEST_PREPARED = 256L << 20;

  private final List<GpuStorage> storages;

  /**
   * @throws InvalidRequestException if there is none, or they belong to several accelerators
   */
  LayerSource(List<GpuStorage> storages) {
    this.storages = List.copyOf(storages);
    if (this.storages.isEmpty()) {
      throw new InvalidRequestException("a layer loader needs a storage");
    }
    for (GpuStorage one : this.storages) {
      if (one.accelerator() != accelerator()) {
        throw new InvalidRequestException(
            "the storages of a layer loader belong to several accelerators: %s, %s"
                .formatted(accelerator().name(), one.accelerator().name()));
      }
    }
  }

  /** Bytes that each path has read so far. */
  Map<PathKind, Long> readBytes() {
    Map<PathKind, Long> bytes = new EnumMap<>(PathKind.class);
    for (GpuStorage storage : storages) {
      storage.readBytes().forEach((path, read) -> bytes.merge(path, read.bytes(), Long::sum));
    }
    return bytes;
  }

  /** How each path works, where it works. */
  Map<PathKind, String> modes() {
    Map<PathKind, String> modes = new EnumMap<>(PathKind.class);
    for (GpuStorage storage : storages) {
      storage.explain().modes().forEach(modes::putIfAbsent);
    }
    return modes;
  }

  Accelerator accelerator() {
    return storages.getFirst().accelerator();
  }

  /** For messages. */
  String name() {
    String first = storages.getFirst().address().toString();
    int others = storages.size() - 1;
    return others == 0 ? first : "%s and %d more".formatted(first, others);
  }

  /** Slots are multiples of this. */
  long unit() {
    return storages.stream().mapToLong(GpuStorage::alignment).reduce(PAGE, Math::max);
  }

  /**
   * Checks that a layer can be read.
   *
   * @throws InvalidRequestException if it cannot
   */
  void check(Layer layer) {
    for (Layer.Piece piece : layer.pieces()) {
      if (piece.storage() >= storages.size()) {
        throw new InvalidRequestException(
            "%s is in storage %d, and the loader has %d"
                .formatted(layer, piece.storage(), storages.size()));
      }
      GpuStorage storage = storages.get(piece.storage());
      if (piece.bytes() > storage.size() - piece.offset()) {
        throw new InvalidRequestException(
            "%s is not inside %s, which has %d bytes"
                .formatted(layer, storage.address(), storage.size()));
      }
    }
  }

  /**
   * Begins to read a layer.
   *
   * @return is over when nothing uses the memory any more, also after a cancel
   */
  CompletableFuture<?> read(Layer layer, DeviceBuffer buffer, long at) {
    Map<Integer, List<Range>> ranges = new TreeMap<>();
    for (Layer.Piece p : layer.pieces()) {
      ranges
          .computeIfAbsent(p.storage(), _ -> new ArrayList<>())
          .add(new Range(p.offset(), buffer, at + p.place(), p.bytes()));
    }
    return read(ranges);
  }

  /** A short read of each storage, at the same place: what a stream must not hold up. */
  CompletableFuture<?> trial(DeviceBuffer buffer, long at) {
    Map<Integer, List<Range>> ranges = new TreeMap<>();
    for (int i = 0; i < storages.size(); i++) {
      long bytes = Math.min(storages.get(i).size(), unit());
      ranges.put(i, List.of(new Range(0, buffer, at, bytes)));
    }
    return read(ranges);
  }

  private CompletableFuture<?> read(Map<Integer, List<Range>> ranges) {
    List<CompletableFuture<TransferResult>> reads = new ArrayList<>();
    try {
      ranges.forEach((storage, some) -> reads.add(storages.get(storage).readAsync(some)));
    } catch (RuntimeException | Error e) {
      if (reads.isEmpty()) {
        throw e;
      }
      // Those that have begun use the memory.
      reads.forEach(read -> read.cancel(true));
      return new Together(reads, e);
    }
    return reads.size() == 1 ? reads.getFirst() : new Together(reads, null);
  }

  /** Reads of several storages. */
  private static final class Together extends CompletableFuture<Void> {
    private final List<CompletableFuture<TransferResult>> reads;

    /**
     * @param why there are not more of them; null if these are all
     */
    Together(List<CompletableFuture<TransferResult>> reads, @Nullable Throwable why) {
      this.reads = reads;
      var _ =
          CompletableFuture.allOf(reads.toArray(CompletableFuture[]::new))
              .whenComplete(
                  (_, failure) -> {
                    Throwable first = why == null ? failure : why;
                    if (first == null) {
                      complete(null);
                    } else {
                      completeExceptionally(first);
                    }
                  });
    }

    /** Asks all of them to end; this is over when they are. */
    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
      reads.forEach(read -> read.cancel(mayInterruptIfRunning));
      return !isDone();
    }
  }

  /** Makes some paths faster; those that cannot do without. */
  void register(DeviceBuffer memory) {
    for (GpuStorage storage : storages) {
      try {
        storage.register(memory);
      } catch (StorageException e) {
        storage.deregister(memory);
      }
    }
  }

  /**
   * Has all storages allocate what reading needs: later that may wait for streams, which will wait
   * for layers.
   */
  void prepare(DeviceBuffer memory, long longest) {
    for (GpuStorage storage : storages) {
      storage.read(0, memory, 0, Math.min(storage.size(), Math.min(longest, LONGEST_PREPARED)));
      // Short reads may go another way.
      if (storage.size() > 1) {
        storage.read(1, memory, 0, 1);
      }
      storage.takeStaging();
    }
  }
}
