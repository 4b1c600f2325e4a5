package io.gpunvme.capi;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.queue.DeviceErrors;
import io.gpunvme.gpu.queue.DeviceFile;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.RunningKernel;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A storage for kernels that C has a handle of: {@code gpunvme_kernel_storage}. Safe for all
 * threads. Closing it stops the kernels that are waited for.
 */
final class Kernels implements AutoCloseable {
  /** How often a caller is asked whether to end. */
  private static final long ASK_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  /** Errors that are told, from the first on. */
  private static final int MOST_LINES = 1000;

  private final List<Storage> storages;
  private final Memory memory;
  private final String name;
  private final KernelStorage kernels;

  /** By their numbers; guarded by this. */
  private final Map<Integer, Place> places = new HashMap<>();

  /** By their addresses; guarded by this. */
  private final Map<Long, DeviceFile> files = new HashMap<>();

  /** Shared by who uses the queues, waits for kernels included; closing takes all of it. */
  private final ReadWriteLock use = new ReentrantReadWriteLock();

  /** What kernels reported, and how much of that there was; guarded by this. */
  private final JsonArray lines = new JsonArray();

  private long errors;

  private volatile boolean closing;

  private Kernels(List<Storage> storages, KernelStorage kernels) {
    this.storages = storages;
    this.kernels = kernels;
    memory = storages.getFirst().memory();
    name = "the kernels of " + storages.getFirst().storage().address();
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

  /** What is done while this is open. */
  private interface Work<T> {
    T run();
  }

  private <T> T whileOpen(Work<T> work) {
    use.readLock().lock();
    try {
      requireOpen();
      return work.run();
    } finally {
      use.readLock().unlock();
    }
  }

  private void requireOpen() {
    if (closing) {
      throw new ClosedHandleException("this storage for kernels or what it is on was closed");
    }
  }

  /** The device address of {@code struct Storage}. */
  long deviceHandle() {
    return whileOpen(kernels::deviceHandle);
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
    Place place = memory.place(address, bytes);
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

  /** Tells kernels of a file; returns the device address of {@code struct DeviceFile}. */
  long file(Storage storage) {
    return whileOpen(
        () -> {
          DeviceFile file = storage.storage().fileForKernels(kernels);
          synchronized (this) {
            files.put(file.deviceAddress(), file);
          }
          return file.deviceAddress();
        });
  }

  void freeFile(long address) {
    whileOpen(
        () -> {
          DeviceFile file;
          synchronized (this) {
            file = files.remove(address);
          }
          if (file == null) {
            throw new InvalidRequestException(
                "no file for kernels is at %Xh of this storage".formatted(address));
          }
          file.close();
          return address;
        });
  }

  // ---- waiting

  /**
   * Waits until all work in a stream is over.
   *
   * @param nanos how long it may take, unsigned
   * @param cancelled asked now and then whether to end; null if nobody wants that
   * @throws NvmeTimeoutException if the time is up
   * @throws StorageException if the kernel was told to stop for another reason, or an SSD is in
   *     trouble
   */
  void await(long stream, long nanos, @Nullable BooleanSupplier cancelled) {
    whileOpen(
        () -> {
          try (CudaStream of = memory.stream(stream, name)) {
            await(of::isIdle, nanos, cancelled);
          }
          return stream;
        });
  }

  /** The same for all work before an event. */
  void awaitEvent(long event, long nanos, @Nullable BooleanSupplier cancelled) {
    whileOpen(
        () -> {
          try (CudaEvent of = memory.event(event, name)) {
            await(of::isDone, nanos, cancelled);
          }
          return event;
        });
  }

  private void await(RunningKernel work, long nanos, @Nullable BooleanSupplier cancelled) {
    Asked kernel = new Asked(work, cancelled);
    long limit = nanos < 0 ? Long.MAX_VALUE : nanos;
    long start = System.nanoTime();
    boolean over;
    try {
      over = kernels.await(kernel, Duration.ofNanos(limit));
    } finally {
      kernel.forgetInterrupt();
    }
    if (over) {
      return;
    }
    if (kernel.told || Thread.currentThread().isInterrupted()) {
      String why = closing ? "was stopped, as its storage was closed" : "was stopped";
      throw new StorageException(Kind.CANCELLED, name, -1, -1, why, null);
    }
    if (System.nanoTime() - start >= limit) {
      throw new NvmeTimeoutException(
          "%s were told to stop after %d ms, and have ended"
              .formatted(name, TimeUnit.NANOSECONDS.toMillis(limit)));
    }
    throw new StorageException(
        Kind.IO,
        name,
        -1,
        -1,
        "an SSD is in trouble, so they were told to stop; they have ended: recover the storage"
            + " before the next one",
        null);
  }

  /** A kernel whose caller may change his mind. Told so, its wait ends as for an interrupt. */
  private final class Asked implements RunningKernel {
    private final RunningKernel kernel;
    private final @Nullable BooleanSupplier cancelled;
    private long asked = System.nanoTime();
    private boolean told;

    Asked(RunningKernel kernel, @Nullable BooleanSupplier cancelled) {
      this.kernel = kernel;
      this.cancelled = cancelled;
    }

    @Override
    public boolean isOver() {
      if (!told && isCancelled()) {
        told = true;
        Thread.currentThread().interrupt();
      }
      return kernel.isOver();
    }

    private boolean isCancelled() {
      if (closing) {
        return true;
      }
      long now = System.nanoTime();
      BooleanSupplier ask = cancelled;
      if (ask == null || now - asked < ASK_NANOS) {
        return false;
      }
      asked = now;
      return ask.getAsBoolean();
    }

    /** The interrupt was for the wait alone. */
    void forgetInterrupt() {
      if (told) {
        Thread.interrupted();
      }
    }
  }

  void stop(boolean value) {
    whileOpen(
        () -> {
          kernels.stop(value);
          return value;
        });
  }

  void recover() {
    whileOpen(kernels::recover);
  }

  /** JSON of the errors that kernels have reported so far. */
  String errors() {
    return whileOpen(this::tellErrors);
  }

  private synchronized String tellErrors() {
    DeviceErrors more = kernels.errors();
    errors += more.total();
    more.records().stream()
        .limit(MOST_LINES - lines.size())
        .forEach(one -> lines.add(one.toString()));
    JsonObject all = new JsonObject();
    all.addProperty("total", errors);
    all.add("errors", lines);
    return all.toString();
  }

  @Override
  public void close() {
    closing = true;
    use.writeLock().lock();
    try {
      storages.forEach(s -> s.users().remove(this));
      kernels.close();
      releasePlaces();
    } finally {
      use.writeLock().unlock();
    }
  }

  private synchronized void releasePlaces() {
    List<Runnable> all = new ArrayList<>();
    places.values().forEach(place -> all.add(place.release()));
    places.clear();
    files.clear();
    CloseAll.each(all, Runnable::run);
  }
}
