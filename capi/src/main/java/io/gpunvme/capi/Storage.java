package io.gpunvme.capi;

import com.google.gson.JsonObject;
import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.MemoryInUse;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StreamTransfers;
import io.gpunvme.storage.path.PathStats;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.RangeChecks;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.plan.Plan;
import io.gpunvme.storage.plan.PlanOptions;
import io.gpunvme.storage.plan.Planner;
import io.gpunvme.storage.plan.Ranges;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** A storage that C has a handle of. Safe for all threads. */
final class Storage implements AutoCloseable {
  /** Data pointers name bytes at multiples of this (Base 2.0, 4.1.1). */
  private static final int POINTER_ALIGNMENT = 4;

  private static final long LONGEST_IO = 1 << 20;

  private final GpuStorage storage;
  private final Memory memory;

  /** Of {@link #allocate}; freed with this. */
  private final Set<Long> allocated = ConcurrentHashMap.newKeySet();

  private final Users users;

  private Storage(GpuStorage storage, Memory memory) {
    this.storage = storage;
    this.memory = memory;
    users = new Users("the storage " + storage.address());
  }

  static Storage open(String uri, Memory memory, boolean write) {
    return new Storage(
        GpuStorage.open(
            StorageAddress.parse(uri), memory.accelerator(), Memory.OPTIONS.withWrite(write)),
        memory);
  }

  GpuStorage storage() {
    return storage;
  }

  Memory memory() {
    return memory;
  }

  Users users() {
    return users;
  }

  // ---- transfers

  /**
   * A range as C gives it.
   *
   * @param bytes 0 or more
   */
  record Item(long offset, long address, long bytes) {}

  /** What becomes of items: ranges for transfers, and those that have to be staged. */
  private final class Job {
    private final List<Range> ranges = new ArrayList<>();
    private final List<Item> staged = new ArrayList<>();
    private final List<Place> places = new ArrayList<>();

    Job(List<Item> items) {
      try {
        items.forEach(this::add);
        // The others are checked by the storage, before any of them is moved.
        if (!staged.isEmpty()) {
          long size = storage.size();
          String name = storage.address().toString();
          staged.forEach(i -> RangeChecks.inside(name, size, i.offset, i.bytes));
        }
      } catch (RuntimeException | Error e) {
        CloseAll.after(e, this::release);
        throw e;
      }
    }

    private void add(Item item) {
      if (item.bytes == 0) {
        return;
      }
      // Many ranges of one tensor: what CUDA knows of it is asked for once.
      Place place = places.isEmpty() ? null : places.getLast();
      if (place == null || !place.contains(item.address, item.bytes)) {
        place = memory.place(item.address, item.bytes);
        if (place == null) {
          staged.add(item);
          return;
        }
        places.add(place);
      }
      ranges.add(new Range(item.offset, place.buffer(), place.offset(item.address), item.bytes));
    }

    /** What moves all of it, if some of it has to be staged; else null. */
    @Nullable HostTransfer hostTransfer(boolean write) {
      return staged.isEmpty()
          ? null
          : new HostTransfer(storage, memory.pieces(), write, ranges, staged);
    }

    void release() {
      places.forEach(p -> p.release().run());
    }
  }

  /**
   * Carries out and waits.
   *
   * @param cancelled asked now and then whether to end early; null if nobody wants that
   */
  void transfer(boolean write, List<Item> items, @Nullable BooleanSupplier cancelled) {
    if (cancelled == null && items.size() == 1 && transferOne(write, items.getFirst())) {
      return;
    }
    Job job = new Job(items);
    try {
      HostTransfer host = job.hostTransfer(write);
      if (host == null) {
        move(storage, write, job.ranges, cancelled);
      } else {
        host.carryOut(cancelled);
      }
    } finally {
      job.release();
    }
  }

  /**
   * The short way of one range: without lists.
   *
   * @return whether it went that way; not what has to be staged
   */
  private boolean transferOne(boolean write, Item item) {
    Place place = item.bytes == 0 ? null : memory.place(item.address, item.bytes);
    if (place == null) {
      return false;
    }
    try {
      long at = place.offset(item.address);
      if (write) {
        storage.write(item.offset, place.buffer(), at, item.bytes);
      } else {
        storage.read(item.offset, place.buffer(), at, item.bytes);
      }
    } finally {
      place.release().run();
    }
    return true;
  }

  /** Carries out what a storage reaches, and waits; {@code cancelled} as above. */
  static void move(
      GpuStorage storage, boolean write, List<Range> ranges, @Nullable BooleanSupplier cancelled) {
    if (cancelled != null) {
      if (write) {
        storage.write(ranges, cancelled);
      } else {
        storage.read(ranges, cancelled);
      }
    } else if (write) {
      storage.write(ranges);
    } else {
      storage.read(ranges);
    }
  }

  /** Begins to carry out. */
  Request submit(boolean write, List<Item> items) {
    Job job = new Job(items);
    // Once it has begun, only its end may let go of the memory.
    CompletableFuture<?> begun = CloseAll.orClose(() -> begin(job, write), job::release);
    return new Request(begun, job::release, users::closed);
  }

  private CompletableFuture<?> begin(Job job, boolean write) {
    HostTransfer host = job.hostTransfer(write);
    if (host == null) {
      return write ? storage.writeAsync(job.ranges) : storage.readAsync(job.ranges);
    }
    HostTransfer.startThread(host);
    return host;
  }

  /**
   * Begins to carry out in the order of a stream.
   *
   * @throws StorageException if the accelerator has no streams
   */
  Request submit(boolean write, Item item, long streamHandle) {
    StreamTransfers streams = storage.streams();
    Place place = memory.place(item.address, item.bytes);
    if (place == null) {
      throw new InvalidRequestException(
          "%Xh is host memory: transfers in the order of a stream need memory of the GPU"
              .formatted(item.address));
    }
    Runnable release = place.release();
    CompletableFuture<Void> future;
    try {
      CudaStream stream = memory.stream(streamHandle, storage.address().toString());
      release =
          () -> {
            place.release().run();
            stream.close();
          };
      long at = place.offset(item.address);
      future =
          write
              ? streams.write(item.offset, place.buffer(), at, item.bytes, stream)
              : streams.read(item.offset, place.buffer(), at, item.bytes, stream);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, release::run);
      throw e;
    }
    // It has begun: only its end may let go of the memory.
    return new Request(future, release, users::closed);
  }

  /** What reading would do. */
  Plan plan(List<Item> items) {
    Ranges.Builder ranges = Ranges.builder();
    long at = 0;
    for (Item item : items) {
      at = Math.ceilDiv(at, POINTER_ALIGNMENT) * POINTER_ALIGNMENT;
      at += item.address & POINTER_ALIGNMENT - 1;
      ranges.add(item.offset, item.bytes, 0, at);
      at += item.bytes;
    }
    return Planner.plan(
        ranges.build(),
        PlanOptions.of(storage.size())
            .alignment(storage.alignment())
            .targetAlignment(POINTER_ALIGNMENT)
            .maxBytes(Math.max(storage.alignment(), LONGEST_IO))
            .gap(storage.alignment())
            .build());
  }

  // ---- memory

  long allocate(long bytes) {
    users.requireOpen();
    long address = memory.allocate(bytes);
    allocated.add(address);
    if (users.closed()) {
      freeIfAllocated(address);
      users.requireOpen();
    }
    return address;
  }

  void free(long address) {
    if (!allocated.remove(address)) {
      throw new InvalidRequestException(
          "%Xh was not allocated with this storage".formatted(address));
    }
    memory.free(address);
  }

  // ---- texts

  String stats() {
    JsonObject paths = new JsonObject();
    storage.stats().forEach((path, s) -> paths.add(path.toString(), json(s)));
    JsonObject all = new JsonObject();
    all.add("paths", paths);
    all.add("memory", json(memory.accelerator().memoryInUse()));
    return all.toString();
  }

  private static JsonObject json(MemoryInUse m) {
    JsonObject json = new JsonObject();
    json.addProperty("accelerator_bytes", m.device());
    json.addProperty("pinned_bytes", m.pinned());
    return json;
  }

  private static JsonObject json(PathStats s) {
    JsonObject json = new JsonObject();
    json.addProperty("read_bytes", s.readBytes());
    json.addProperty("written_bytes", s.writtenBytes());
    json.addProperty("operations", s.operations());
    json.addProperty("retries", s.retries());
    json.addProperty("staged_bytes", s.stagedBytes());
    json.addProperty("overread_bytes", s.overreadBytes());
    json.addProperty("latency_p50_ns", s.latency().getValueAtPercentile(50));
    json.addProperty("latency_p99_ns", s.latency().getValueAtPercentile(99));
    return json;
  }

  /** Closes all of it, whatever fails; throws the first failure. */
  @Override
  public void close() throws Exception {
    List<AutoCloseable> all = users.end();
    all.add(storage);
    for (long address : allocated) {
      all.add(() -> freeIfAllocated(address));
    }
    Exception failure = null;
    for (AutoCloseable one : all) {
      try {
        one.close();
      } catch (Exception e) {
        failure = failure == null ? e : failure;
      }
    }
    if (failure != null) {
      throw failure;
    }
  }

  private void freeIfAllocated(long address) {
    if (allocated.remove(address)) {
      memory.free(address);
    }
  }
}
