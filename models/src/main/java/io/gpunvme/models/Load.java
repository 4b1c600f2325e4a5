package io.gpunvme.models;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.models.Batches.Batch;
import io.gpunvme.models.LoadPlan.Method;
import io.gpunvme.models.LoadPlan.Place;
import io.gpunvme.models.tensor.TensorKernels;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.TransferResult;
import io.gpunvme.storage.path.MemberStats;
import io.gpunvme.storage.path.ReadBytes;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.StorageFailures;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * One load: planned, but not begun. Any thread can cancel it. After a failure or a cancellation,
 * {@link #run} can be called again; tensors that have arrived are not read again. Closing frees
 * everything that {@link #run} did not hand over.
 */
public final class Load implements AutoCloseable {
  /** Batches at a time. */
  private static final int AHEAD = 2;

  private static final ThreadFactory THREADS =
      Thread.ofPlatform().daemon().name("gpunvme-load-", 1).factory();

  private final WeightSource source;
  private final Accelerator accelerator;
  private final LoadPlan plan;
  private final @Nullable Manifest manifest;
  private final List<Allocation> allocations = new ArrayList<>();
  private final boolean[] done;
  private final AtomicBoolean cancelled = new AtomicBoolean();
  private final AtomicLong retries = new AtomicLong();
  private long batchBytes = Batches.BYTES;
  private long allocateNanos;
  private long verifyNanos;
  private int verified;
  private volatile String path = "";
  private volatile String mode = "";
  private boolean over;

  Load(WeightSource source, Accelerator accelerator, LoadPlan plan, @Nullable Manifest manifest) {
    this.source = source;
    this.accelerator = accelerator;
    this.plan = plan;
    this.manifest = manifest;
    done = new boolean[plan.tensors()];
    if (manifest != null) {
      manifest.requireAll(plan.places().stream().map(Place::part).toList());
    }
  }

  /** For tests with small models: what is read by the first batches at most. */
  void batchBytes(long bytes) {
    batchBytes = bytes;
  }

  /** The plan of this load. */
  public LoadPlan plan() {
    return plan;
  }

  /** Asks {@link #run} to end; it then fails with {@link Kind#CANCELLED}. Any thread. */
  public void cancel() {
    cancelled.set(true);
  }

  /**
   * Loads the tensors that are not loaded yet.
   *
   * @return all tensors; the caller closes them
   * @throws StorageException if reading fails more often than the request allows, a checksum is
   *     wrong, or the load was cancelled; it can be run again
   */
  public synchronized LoadedWeights run(LoadListener listener) {
    if (over) {
      throw new IllegalStateException("this load is over");
    }
    long start = System.nanoTime();
    long before = readBytes();
    try (LateKernels kernels = new LateKernels(accelerator)) {
      requireRoom();
      // Before kernels run that wait for SSDs: the driver may wait for them then.
      allocate();
      if (manifest != null || plan.ringBytes() > 0) {
        kernels.get();
      }
      readAll(kernels, listener);
      gather(kernels, listener);
    }
    List<LoadedTensor> tensors = new ArrayList<>();
    for (Place p : plan.places()) {
      tensors.add(new LoadedTensor(p.part(), allocations.get(p.allocation()), p.offset()));
    }
    // Each tensor holds on to its memory by itself now.
    close();
    return new LoadedWeights(tensors, report(System.nanoTime() - start, before));
  }

  /** Kernels that are loaded when one is needed: most loads need none. */
  private static final class LateKernels implements AutoCloseable {
    private final Accelerator accelerator;
    private @Nullable TensorKernels opened;

    LateKernels(Accelerator accelerator) {
      this.accelerator = accelerator;
    }

    TensorKernels get() {
      TensorKernels there = opened;
      if (there == null) {
        there = TensorKernels.open(accelerator);
        opened = there;
      }
      return there;
    }

    @Override
    public void close() {
      TensorKernels there = opened;
      if (there != null) {
        there.close();
      }
    }
  }

  /** Before anything is read, as far as can be known. */
  private void requireRoom() {
    long wanted = plan.ringBytes();
    for (int i = allocations.size(); i < plan.allocations().size(); i++) {
      wanted += plan.allocations().get(i);
    }
    long free = accelerator.availableBytes();
    if (wanted > free) {
      throw new StorageException(
          Kind.ACCELERATOR_MEMORY,
          source.name(),
          -1,
          -1,
          "%d bytes of %s are needed, and %d are free: load fewer tensors, or one rank's part"
              .formatted(wanted, accelerator.name(), free),
          null);
    }
  }

  private void allocate() {
    long start = System.nanoTime();
    try {
      while (allocations.size() < plan.allocations().size()) {
        long bytes = plan.allocations().get(allocations.size());
        allocations.add(new Allocation(accelerator.allocateUncleared(bytes)));
      }
    } catch (RuntimeException e) {
      throw StorageFailures.of(e, source.name(), -1, -1);
    } finally {
      allocateNanos += System.nanoTime() - start;
    }
  }

  private void throwIfCancelled() {
    if (cancelled.compareAndSet(true, false)) {
      throw new StorageException(Kind.CANCELLED, source.name(), -1, -1, "cancelled", null);
    }
  }

  /** A batch under way since a moment in ns. */
  private record Reading(Batch batch, Future<?> end, long start) {}

  /**
   * Reads everything that is not picked in the ring, two batches at a time: while the last commands
   * of one are waited for, those of the next keep the SSDs busy.
   */
  private void readAll(LateKernels kernels, LoadListener listener) {
    Deque<Reading> under = new ArrayDeque<>();
    RuntimeException failure = null;
    try (ExecutorService threads = Executors.newFixedThreadPool(AHEAD, THREADS)) {
      Batches batches = batches();
      boolean more = true;
      while (more || !under.isEmpty()) {
        more = more && failure == null;
        while (more && under.size() < AHEAD) {
          Batch batch = batches.next();
          more = batch != null;
          if (batch != null) {
            Future<?> end = threads.submit(() -> read(batch));
            under.add(new Reading(batch, end, System.nanoTime()));
          }
        }
        failure = settle(under, batches, failure, kernels, listener);
        more = more && !cancelled.get();
      }
    }
    if (failure != null) {
      throw failure;
    }
    if (batches().next() != null) {
      throwIfCancelled();
    }
  }

  private Batches batches() {
    return new Batches(plan, this::isRead, i -> allocations.get(i).memory(), batchBytes);
  }

  /** Waits for the oldest batch; returns the first failure so far. */
  private @Nullable RuntimeException settle(
      Deque<Reading> under,
      Batches batches,
      @Nullable RuntimeException before,
      LateKernels kernels,
      LoadListener listener) {
    Reading oldest = under.poll();
    if (oldest == null) {
      return before;
    }
    try {
      Waiting.forEnd(oldest.end);
      batches.took(oldest.batch, System.nanoTime() - oldest.start);
      finish(oldest.batch.members(), kernels, listener);
      return before;
    } catch (RuntimeException e) {
      if (before == null) {
        return e;
      }
      before.addSuppressed(e);
      return before;
    }
  }

  private void read(Batch batch) {
    if (batch.ranges().size() > 0) {
      throwIfCancelled();
      repeated(() -> storage(batch.first()).read(batch.ranges(), batch.targets()));
    }
  }

  /** Whether a tensor is still to be read, and not picked in the ring. */
  private boolean isRead(int i) {
    return !done[i] && plan.places().get(i).method() != Method.GATHER;
  }

  private GpuStorage storage(Place place) {
    return source.storage(place.part().file());
  }

  /** A read, as often as the request allows. */
  private interface Read {
    TransferResult once();
  }

  private void repeated(Read read) {
    for (int left = plan.request().retries(); ; left--) {
      try {
        TransferResult result = read.once();
        note(result);
        return;
      } catch (StorageException e) {
        if (left == 0 || e.kind() != Kind.IO) {
          throw e;
        }
        retries.incrementAndGet();
        throwIfCancelled();
      }
    }
  }

  private void note(TransferResult result) {
    path = result.path().toString();
    mode = result.mode();
  }

  private void finish(List<Integer> members, LateKernels kernels, LoadListener listener) {
    Manifest wanted = manifest;
    if (wanted != null) {
      long start = System.nanoTime();
      verify(wanted, members, kernels.get());
      verifyNanos += System.nanoTime() - start;
    }
    for (int i : members) {
      done[i] = true;
      listener.loaded(plan.places().get(i).part().bytes());
    }
  }

  private void verify(Manifest wanted, List<Integer> members, TensorKernels kernels) {
    List<TensorKernels.Piece> pieces = new ArrayList<>();
    for (int i : members) {
      Place p = plan.places().get(i);
      DeviceBuffer memory = allocations.get(p.allocation()).memory();
      pieces.add(new TensorKernels.Piece(memory, p.offset(), p.part().bytes()));
    }
    int[] sums = kernels.crc32c(pieces);
    for (int k = 0; k < sums.length; k++) {
      wanted.require(plan.places().get(members.get(k)).part(), sums[k], source.name());
      verified++;
    }
  }

  /** Tensors of which rows are picked in the ring, one after the other. */
  private void gather(LateKernels kernels, LoadListener listener) {
    if (plan.ringBytes() == 0) {
      return;
    }
    DeviceBuffer ring = null;
    try {
      for (int i = 0; i < done.length; i++) {
        Place p = plan.places().get(i);
        if (!done[i] && p.method() == Method.GATHER) {
          ring = ring == null ? allocateRing() : ring;
          gather(p, ring, kernels.get());
          finish(List.of(i), kernels, listener);
        }
      }
    } finally {
      if (ring != null) {
        kernels.get().await();
        ring.close();
      }
    }
  }

  private DeviceBuffer allocateRing() {
    try {
      return accelerator.allocate(plan.ringBytes());
    } catch (RuntimeException e) {
      throw StorageFailures.of(e, source.name(), -1, -1);
    }
  }

  /** Rows are picked from one half of the ring while the other is read to. */
  private void gather(Place p, DeviceBuffer ring, TensorKernels kernels) {
    Part part = p.part();
    DeviceBuffer target = allocations.get(p.allocation()).memory();
    long half = ring.size() / 2 & -LoadPlan.ALIGNMENT;
    long most = Math.max(1, (half - part.width()) / part.pitch() + 1);
    int chunk = 0;
    for (long row = 0; row < part.rows(); row += most, chunk++) {
      throwIfCancelled();
      long rows = Math.min(most, part.rows() - row);
      long bytes = (rows - 1) * part.pitch() + part.width();
      long from = part.offset() + row * part.pitch();
      long at = chunk % 2 * half;
      repeated(() -> storage(p).read(from, ring, at, bytes));
      // The copy out of the other half is over before that is read to again.
      kernels.await();
      kernels.stridedCopy(
          ring,
          at,
          part.pitch(),
          target,
          p.offset() + row * part.width(),
          part.width(),
          part.width(),
          rows);
    }
    kernels.await();
  }

  /** What all storages have moved so far. */
  private long readBytes() {
    long bytes = 0;
    for (int file = 0; file < source.files().size(); file++) {
      for (ReadBytes read : source.storage(file).readBytes().values()) {
        bytes += read.bytes() + read.overread();
      }
    }
    return bytes;
  }

  private LoadReport report(long nanos, long before) {
    List<MemberStats> members = new ArrayList<>();
    for (int file = 0; file < source.files().size(); file++) {
      members.addAll(source.storage(file).members());
    }
    return new LoadReport(
        path,
        mode,
        plan.tensors(),
        plan.bytes(),
        readBytes() - before,
        nanos,
        allocateNanos,
        verifyNanos,
        retries.get(),
        plan.tensorBytes(),
        plan.ringBytes(),
        verified,
        members);
  }

  /** Frees everything that was not handed over. Idempotent. */
  @Override
  public synchronized void close() {
    if (!over) {
      over = true;
      CloseAll.each(allocations, Allocation::leave);
    }
  }
}
