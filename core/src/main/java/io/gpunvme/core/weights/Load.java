package io.gpunvme.core.weights;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.accel.DeviceBuffer;
import io.gpunvme.core.path.Failures;
import io.gpunvme.core.path.PathStats;
import io.gpunvme.core.path.StorageException;
import io.gpunvme.core.path.StorageException.Kind;
import io.gpunvme.core.path.set.MemberStats;
import io.gpunvme.core.plan.Ranges;
import io.gpunvme.core.storage.GpuStorage;
import io.gpunvme.core.storage.TransferResult;
import io.gpunvme.core.tensor.TensorKernels;
import io.gpunvme.core.weights.LoadPlan.Method;
import io.gpunvme.core.weights.LoadPlan.Place;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * One load, planned and not begun. It can be cancelled by any thread, and {@link #run} again after
 * a failure or a cancellation: what has arrived is not read again. Closing it frees what {@link
 * #run} did not hand over.
 */
public final class Load implements AutoCloseable {
  /** What is read between two looks at the cancellation, and two words to the listener. */
  private static final long BATCH = 512 << 20;

  private final WeightSource source;
  private final Accelerator accelerator;
  private final LoadPlan plan;
  private final @Nullable Manifest manifest;
  private final List<Allocation> allocations = new ArrayList<>();
  private final boolean[] done;
  private final AtomicBoolean cancelled = new AtomicBoolean();
  private long retries;
  private long verifyNanos;
  private int verified;
  private String path = "";
  private String mode = "";
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

  /** What it will do. */
  public LoadPlan plan() {
    return plan;
  }

  /** Asks {@link #run} to end; it fails with {@link Kind#CANCELLED} then. Any thread. */
  public void cancel() {
    cancelled.set(true);
  }

  /**
   * Loads what has not been loaded yet.
   *
   * @return all tensors, which are the caller's to close
   * @throws StorageException if reading fails more often than the request allows, a checksum is
   *     wrong, or it was cancelled; it can be run again
   */
  public synchronized LoadedWeights run(LoadListener listener) {
    if (over) {
      throw new IllegalStateException("this load is over");
    }
    cancelled.set(false);
    long start = System.nanoTime();
    long before = readBytes();
    try (LateKernels kernels = new LateKernels(accelerator)) {
      allocate();
      int next = 0;
      while (next < done.length) {
        next = batch(next, kernels, listener);
      }
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

  private void allocate() {
    try {
      while (allocations.size() < plan.allocations().size()) {
        long bytes = plan.allocations().get(allocations.size());
        allocations.add(new Allocation(accelerator.allocate(bytes)));
      }
    } catch (RuntimeException e) {
      throw Failures.of(e, source.name(), -1, -1);
    }
  }

  private void throwIfCancelled() {
    if (cancelled.get()) {
      throw new StorageException(Kind.CANCELLED, source.name(), -1, -1, "cancelled", null);
    }
  }

  /**
   * Reads tensors that lie in one file and go to one allocation, up to a certain length; returns
   * the first that is left.
   */
  private int batch(int from, LateKernels kernels, LoadListener listener) {
    Ranges.Builder ranges = Ranges.builder();
    List<Integer> members = new ArrayList<>();
    Place first = plan.places().get(from);
    long bytes = 0;
    int i = from;
    for (; i < done.length; i++) {
      Place p = plan.places().get(i);
      boolean full = bytes > 0 && bytes + p.part().bytes() > BATCH;
      if (full || p.part().file() != first.part().file() || p.allocation() != first.allocation()) {
        break;
      }
      if (!done[i] && p.method() != Method.GATHER) {
        add(p, ranges);
        members.add(i);
        bytes += p.part().bytes();
      }
    }
    if (!members.isEmpty()) {
      throwIfCancelled();
      if (bytes > 0) {
        Ranges all = ranges.build();
        DeviceBuffer target = allocations.get(first.allocation()).memory();
        repeated(() -> storage(first).read(all, List.of(target)));
      }
      finish(members, kernels, listener);
    }
    return i;
  }

  private GpuStorage storage(Place place) {
    return source.storage(place.part().file());
  }

  private static void add(Place p, Ranges.Builder ranges) {
    Part part = p.part();
    for (long row = 0; row < part.rows() && part.width() > 0; row++) {
      ranges.add(
          part.offset() + row * part.pitch(), part.width(), 0, p.offset() + row * part.width());
    }
  }

  /** A read, as often as the request allows. */
  private interface Read {
    TransferResult once();
  }

  private void repeated(Read read) {
    for (int left = plan.request().retries(); ; left--) {
      try {
        TransferResult result = read.once();
        path = result.path().toString();
        mode = result.mode();
        return;
      } catch (StorageException e) {
        if (left == 0 || e.kind() != Kind.IO) {
          throw e;
        }
        retries++;
        throwIfCancelled();
      }
    }
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
      throw Failures.of(e, source.name(), -1, -1);
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
      for (PathStats s : source.storage(file).stats().values()) {
        bytes += s.readBytes() + s.overreadBytes();
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
        verifyNanos,
        retries,
        plan.tensorBytes(),
        plan.ringBytes(),
        verified,
        members);
  }

  /** Frees what was not handed over. Idempotent. */
  @Override
  public synchronized void close() {
    if (!over) {
      over = true;
      allocations.forEach(Allocation::leave);
    }
  }
}
