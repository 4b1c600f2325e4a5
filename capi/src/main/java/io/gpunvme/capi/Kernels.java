package io.gpunvme.capi;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.queue.DeviceArray;
import io.gpunvme.gpu.queue.DeviceDirectory;
import io.gpunvme.gpu.queue.DeviceErrors;
import io.gpunvme.gpu.queue.DeviceFile;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.PageCacheOptions;
import io.gpunvme.gpu.queue.RunningKernel;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A storage for kernels, and the kernels that are given its own handle. */
final class Kernels extends KernelGroup {
  private final List<Storage> storages;
  private final KernelStorage kernels;

  /** By their numbers; guarded by this. */
  private final Map<Integer, Place> places = new HashMap<>();

  /**
   * What kernels were told.
   *
   * @param skipped null for a file
   */
  private record Table(Runnable close, @Nullable Lines skipped) {}

  /** By their addresses; guarded by this. */
  private final Map<Long, Table> tables = new HashMap<>();

  /** What kernels reported; guarded by this. */
  private final Lines errors = new Lines("errors");

  private Kernels(List<Storage> storages, KernelStorage kernels) {
    super(
        storages.getFirst().memory(), "the kernels of " + storages.getFirst().storage().address());
    this.storages = storages;
    this.kernels = kernels;
  }

  static Kernels open(List<Storage> storages, KernelStorageOptions options) {
    List<GpuStorage> open = storages.stream().map(Storage::storage).toList();
    Kernels opened = new Kernels(storages, GpuStorage.forKernels(open, options));
    try {
      storages.forEach(s -> s.users().add(opened));
    } catch (ClosedHandleException e) {
      CloseAll.after(e, opened::close);
      throw e;
    }
    return opened;
  }

  /**
   * A buffer for kernels.
   *
   * @param offset where the caller's first byte is in it
   */
  record Numbered(int number, long offset) {}

  Numbered register(long address, long bytes) {
    if (bytes == 0) {
      throw new InvalidRequestException("a buffer of 0 bytes");
    }
    return whileOpen(() -> registerPlace(address, bytes));
  }

  private Numbered registerPlace(long address, long bytes) {
    Place place = memory().place(address, bytes);
    if (place == null) {
      throw new InvalidRequestException(
          "%Xh is host memory: kernels read into memory of the GPU".formatted(address));
    }
    try {
      long offset = place.offset(address);
      synchronized (this) {
        int number = kernels.register(place.buffer(), offset + bytes);
        places.put(number, place);
        return new Numbered(number, offset);
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, place.release()::run);
      throw e;
    }
  }

  void unregister(int number) {
    whileOpen(
        () -> {
          Place place;
          synchronized (this) {
            kernels.unregister(number);
            place = places.remove(number);
          }
          if (place != null) {
            place.release().run();
          }
          return number;
        });
  }

  // ---- files and directories

  /** Tells kernels of a file; returns the device address of {@code struct DeviceFile}. */
  long file(Storage storage) {
    return whileOpen(
        () -> {
          DeviceFile file = storage.storage().fileForKernels(kernels);
          return keep(file.deviceAddress(), new Table(file::close, null));
        });
  }

  /**
   * Tells kernels of the files below a directory; returns the device address of {@code struct
   * DeviceDirectory}.
   *
   * @param skip whether files that kernels cannot be told of are left out
   */
  long directory(Storage storage, String path, boolean skip) {
    return whileOpen(
        () -> {
          Lines skipped = new Lines("skipped");
          DeviceDirectory directory =
              storage
                  .storage()
                  .directoryForKernels(
                      kernels,
                      path,
                      e -> {
                        if (!skip) {
                          throw e;
                        }
                        skipped.add(String.valueOf(e.getMessage()));
                      });
          return keep(directory.deviceAddress(), new Table(directory::close, skipped));
        });
  }

  private synchronized long keep(long address, Table table) {
    tables.put(address, table);
    return address;
  }

  /** JSON of the files that a directory was made without. */
  String skipped(long address) {
    return whileOpen(
        () -> {
          Table table;
          synchronized (this) {
            table = tables.get(address);
          }
          Lines skipped = table == null ? null : table.skipped();
          if (skipped == null) {
            throw new InvalidRequestException(
                "no directory for kernels is at %Xh of this storage".formatted(address));
          }
          return skipped.json();
        });
  }

  /** Tells kernels of an array; returns the device address of {@code struct DeviceArray}. */
  long array(Supplier<DeviceArray> make) {
    return whileOpen(
        () -> {
          DeviceArray array = make.get();
          return keep(array.deviceAddress(), new Table(array::close, null));
        });
  }

  /** A cache for arrays and rows. */
  Cache cache(PageCacheOptions options) {
    return whileOpen(() -> new Cache(this, kernels.cache(options)));
  }

  /** Frees what kernels were told of a file, a directory or an array. */
  void free(long address) {
    whileOpen(
        () -> {
          Table table;
          synchronized (this) {
            table = tables.remove(address);
          }
          if (table == null) {
            throw new InvalidRequestException(
                "no file, directory or array for kernels is at %Xh of this storage"
                    .formatted(address));
          }
          table.close().run();
          return address;
        });
  }

  // ---- kernels

  @Override
  Kernels storage() {
    return this;
  }

  @Override
  long address() {
    return kernels.deviceHandle();
  }

  @Override
  boolean awaitKernel(RunningKernel kernel, Duration limit) {
    return kernels.await(kernel, limit);
  }

  @Override
  boolean troubled() {
    return kernels.troubled();
  }

  @Override
  void tellToStop(boolean value) {
    kernels.stop(value);
  }

  /** For a kernel that is stopped and waited for by itself. */
  OneKernel handle() {
    return whileOpen(() -> new OneKernel(this, kernels.handle()));
  }

  void recover() {
    whileOpen(kernels::recover);
  }

  /** How many recoveries came to their end while kernels ran. */
  int recoveries() {
    return whileOpen(kernels::recoveries);
  }

  /** JSON of the errors that kernels have reported so far. */
  String errors() {
    return whileOpen(this::tellErrors);
  }

  private synchronized String tellErrors() {
    DeviceErrors more = kernels.errors();
    more.records().forEach(one -> errors.add(one.toString()));
    errors.count(more.total() - more.records().size());
    return errors.json();
  }

  @Override
  void giveBack() {
    try {
      kernels.close();
    } catch (NvmeException | InvalidRequestException e) {
      throw new StorageException(
          Kind.IO,
          name(),
          -1,
          -1,
          "an SSD keeps its queues, so nothing is freed; close the storages that they are on, then"
              + " this again: "
              + e.getMessage(),
          e);
    }
    storages.forEach(s -> s.users().remove(this));
    releasePlaces();
  }

  private synchronized void releasePlaces() {
    List<Runnable> all = new ArrayList<>();
    places.values().forEach(place -> all.add(place.release()));
    places.clear();
    tables.clear();
    CloseAll.each(all, Runnable::run);
  }
}
