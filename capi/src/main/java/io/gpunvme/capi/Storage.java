package io.gpunvme.capi;

import com.google.gson.JsonObject;
import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.MemoryInUse;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StreamTransfers;
import io.gpunvme.storage.path.MemberStats;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.PathStats;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.RangeChecks;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.plan.Plan;
import io.gpunvme.storage.plan.PlanOptions;
import io.gpunvme.storage.plan.Planner;
import io.gpunvme.storage.plan.Ranges;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A storage that C has a handle of. Safe for all threads. */
final class Storage implements AutoCloseable {
  /** Data pointers name bytes at multiples of this (Base 2.0, 4.1.1). */
  private static final int POINTER_ALIGNMENT = 4;

  private static final long LONGEST_IO = 1 << 20;

  /** How often it is asked whether a transfer is to end. */
  private static final long ASKS_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  private final GpuStorage storage;
  private final Memory memory;

  /** Of {@link #allocate}; freed with this. */
  private final Set<Long> allocated = ConcurrentHashMap.newKeySet();

  private final Users users;

  /** The same storage for memory of other GPUs, as it came; closed with this. */
  private final Map<Memory, Storage> others = new ConcurrentHashMap<>();

  /** What else is to be done when this is closed. */
  private final Consumer<Storage> forget;

  private Storage(GpuStorage storage, Memory memory, Consumer<Storage> forget) {
    this.storage = storage;
    this.memory = memory;
    this.forget = forget;
    users = new Users("the storage " + storage.address());
  }

  static Storage open(String uri, Memory memory, boolean write) {
    return new Storage(
        GpuStorage.open(
            StorageAddress.parse(uri), memory.accelerator(), Memory.OPTIONS.withWrite(write)),
        memory,
        _ -> {});
  }

  /**
   * The same for another accelerator.
   *
   * @return closed with this, if not before
   * @throws ClosedHandleException if this is closed
   */
  Storage on(Memory other) {
    Storage theirs = new Storage(storage.on(other.accelerator()), other, users::remove);
    return CloseAll.orClose(
        () -> {
          users.add(theirs);
          return theirs;
        },
        theirs.storage::close);
  }

  /** The one that reaches memory of an accelerator. */
  private Storage side(Memory of) {
    return of == memory ? this : others.computeIfAbsent(of, this::on);
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
    /** By the storage that reaches their memory: of several GPUs, or mostly of one. */
    private final Map<Storage, List<Range>> ranges = new LinkedHashMap<>();

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
        place = memory.find(item.address, item.bytes);
        if (place == null) {
          staged.add(item);
          return;
        }
        places.add(place);
      }
      ranges
          .computeIfAbsent(side(place.memory()), _ -> new ArrayList<>())
          .add(new Range(item.offset, place.buffer(), place.offset(item.address), item.bytes));
    }

    /** The storage that all of it is for; null if several GPUs have some. */
    @Nullable Storage only() {
      Set<Storage> all = new HashSet<>(ranges.keySet());
      if (!staged.isEmpty() || all.isEmpty()) {
        all.add(Storage.this);
      }
      return all.size() == 1 ? all.iterator().next() : null;
    }

    private List<Range> of(Storage one) {
      return ranges.getOrDefault(one, List.of());
    }

    /** What moves the part of this storage, if some of it has to be staged; else null. */
    private @Nullable HostTransfer hostTransfer(boolean write) {
      return staged.isEmpty()
          ? null
          : new HostTransfer(storage, memory.pieces(), write, of(Storage.this), staged);
    }

    /** Carries out, and waits; only if all of it is for one storage. */
    void carryOut(Storage one, boolean write, @Nullable BooleanSupplier cancelled) {
      HostTransfer host = hostTransfer(write);
      if (host == null) {
        move(one.storage, write, of(one), cancelled);
      } else {
        host.carryOut(cancelled);
      }
    }

    /** Begins all of it: each GPU's part at the same time. */
    CompletableFuture<?> begin(boolean write) {
      List<CompletableFuture<?>> begun = new ArrayList<>();
      try {
        HostTransfer host = hostTransfer(write);
        if (host != null) {
          HostTransfer.startThread(host);
          begun.add(host);
          ranges.remove(Storage.this);
        } else if (ranges.isEmpty()) {
          ranges.put(Storage.this, List.of());
        }
        ranges.forEach(
            (one, theirs) ->
                begun.add(write ? one.storage.writeAsync(theirs) : one.storage.readAsync(theirs)));
      } catch (RuntimeException | Error e) {
        CloseAll.after(e, new SeveralTransfers(begun)::end);
        throw e;
      }
      return begun.size() == 1 ? begun.getFirst() : new SeveralTransfers(begun);
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
  void transfer(boolean write, List<Item> items, @Nullable BooleanSupplier cancelled)
      throws Throwable {
    if (cancelled == null && items.size() == 1 && transferOne(write, items.getFirst())) {
      return;
    }
    Job job = new Job(items);
    Storage only = CloseAll.orClose(job::only, job::release);
    if (only == null) {
      await(begin(job, write), cancelled);
      return;
    }
    try {
      job.carryOut(only, write, cancelled);
    } finally {
      job.release();
    }
  }

  private static void await(Request request, @Nullable BooleanSupplier cancelled) throws Throwable {
    boolean over = cancelled == null && request.await(-1);
    while (!over) {
      over = request.await(ASKS_NANOS);
      if (cancelled != null && cancelled.getAsBoolean()) {
        request.cancel();
      }
    }
  }

  /**
   * The short way of one range: without lists.
   *
   * @return whether it went that way; not what has to be staged
   */
  private boolean transferOne(boolean write, Item item) {
    Place place = item.bytes == 0 ? null : memory.find(item.address, item.bytes);
    if (place == null) {
      return false;
    }
    try {
      GpuStorage reaching = side(place.memory()).storage;
      long at = place.offset(item.address);
      if (write) {
        reaching.write(item.offset, place.buffer(), at, item.bytes);
      } else {
        reaching.read(item.offset, place.buffer(), at, item.bytes);
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
    return begin(new Job(items), write);
  }

  private Request begin(Job job, boolean write) {
    // Once it has begun, only its end may let go of the memory.
    CompletableFuture<?> begun = CloseAll.orClose(() -> job.begin(write), job::release);
    return new Request(begun, job::release, users::closed);
  }

  /**
   * Begins to carry out in the order of a stream.
   *
   * @throws StorageException if the accelerator has no streams
   */
  Request submit(boolean write, Item item, long streamHandle) {
    Place place = memory.find(item.address, item.bytes);
    if (place == null) {
      throw new InvalidRequestException(
          "%Xh is host memory: transfers in the order of a stream need memory of the GPU"
              .formatted(item.address));
    }
    Runnable release = place.release();
    CompletableFuture<Void> future;
    try {
      // The stream is one of the GPU that has the memory.
      StreamTransfers streams = side(place.memory()).storage.streams();
      CudaStream stream = place.memory().stream(streamHandle, storage.address().toString());
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
    Map<PathKind, PathStats> counts = new EnumMap<>(PathKind.class);
    counts.putAll(storage.stats());
    others
        .values()
        .forEach(o -> o.storage.stats().forEach((p, s) -> counts.merge(p, s, PathStats::plus)));
    counts.forEach((path, s) -> paths.add(path.toString(), json(s)));
    JsonObject all = new JsonObject();
    all.add("paths", paths);
    all.add("memory", json(memory.accelerator().memoryInUse()));
    MemberStats.addTo(all, storage.members());
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
    all.add(() -> forget.accept(this));
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
