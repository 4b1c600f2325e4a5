package io.gpunvme.storage.path.pinned;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.ScopedLock;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.nvme.pci.NumaHome;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The pinned memory and the streams that nobody uses just now, and threads. All paths on a GPU
 * share a stock, which lives as long as the accelerator: the driver takes longer to pin memory
 * (cuMemHostAlloc: 1.7 ms for 2 MiB, one caller at a time) and to let it go than a file takes to
 * fill it, so a file that is opened after another, or beside it, is to find some. The last given
 * back is the next taken, since the caches may still hold it.
 *
 * <p>Files of one block device share threads, too: those that have no more to do for one file go on
 * with the next, so that two files that are read one after the other keep them busy, and no more of
 * them are at work than one file wants. A slow device holds up nobody else's; a long read of it
 * leaves to others of that device the threads that ask.
 *
 * <p>Safe for all threads.
 */
final class SlotStock implements GpuAccelerator.Keeper, AutoCloseable {
  /** Bytes kept that nobody uses; four rings of the usual size. */
  private static final long MOST_KEPT = 256L << 20;

  private static final int MOST_STREAMS = 64;

  private final Accelerator accelerator;
  private final NumaHome home;
  private final long mostKept;
  private final ScopedLock lock = new ScopedLock();

  /** By the size of a slot. Guarded by the lock. */
  private final Map<Integer, Deque<PinnedSlot>> free = new HashMap<>();

  /** Bytes of them. Guarded by the lock. */
  private long kept;

  /** Guarded by the lock. */
  private final Deque<CudaStream> streams = new ArrayDeque<>();

  /** Guarded by the lock. */
  private final Map<Serving, CopyWorkers> workers = new HashMap<>();

  /** How many paths have them. Guarded by the lock. */
  private final Map<CopyWorkers, Integer> paths = new HashMap<>();

  /** What threads are for. */
  private record Serving(String device, int most, String home) {}

  /**
   * An empty one of its owner's.
   *
   * @param home of the memory
   */
  SlotStock(Accelerator accelerator, NumaHome home) {
    this(accelerator, home, MOST_KEPT);
  }

  SlotStock(Accelerator accelerator, NumaHome home, long mostKept) {
    this.accelerator = accelerator;
    this.home = home;
    this.mostKept = mostKept;
  }

  /** The one that all paths on a GPU share; it is gone with the accelerator. */
  static SlotStock of(GpuAccelerator gpu) {
    return gpu.shared(SlotStock.class, "pinned slots", () -> new SlotStock(gpu, gpu.home()));
  }

  /**
   * A slot of these bytes, of what is kept if there is one.
   *
   * @throws CudaException if there is no pinned memory, though all that is kept was freed for it
   * @throws PosixException the same, on the stand-in
   */
  PinnedSlot take(int chunk) {
    PinnedSlot slot = poll(chunk);
    if (slot != null) {
      return slot;
    }
    try {
      return allocate(chunk);
    } catch (CudaException | PosixException e) {
      if (bytes() == 0) {
        throw e;
      }
      freeKept();
      return allocate(chunk);
    }
  }

  private @Nullable PinnedSlot poll(int chunk) {
    try (var _ = lock.hold()) {
      Deque<PinnedSlot> some = free.get(chunk);
      PinnedSlot slot = some == null ? null : some.pollLast();
      kept -= slot == null ? 0 : chunk;
      return slot;
    }
  }

  private PinnedSlot allocate(int chunk) {
    DeviceBuffer memory;
    try (var _ = home.memory()) {
      memory = accelerator.allocatePinned(chunk);
    }
    try {
      CudaEvent copied = accelerator.cuda().map(gpu -> gpu.context().event()).orElse(null);
      return new PinnedSlot(memory, memory.segment().asSlice(0, chunk), copied);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, memory::close);
      throw e;
    }
  }

  /** Takes a slot back in which nothing is at work; frees it if enough are kept. */
  void give(PinnedSlot slot) {
    int chunk = Math.toIntExact(slot.segment().byteSize());
    try (var _ = lock.hold()) {
      if (kept + chunk <= mostKept) {
        free.computeIfAbsent(chunk, _ -> new ArrayDeque<>()).addLast(slot);
        kept += chunk;
        return;
      }
    }
    slot.close();
  }

  /** A stream of the GPU, in which nothing is under way. */
  CudaStream takeStream(GpuAccelerator gpu) {
    try (var _ = lock.hold()) {
      CudaStream stream = streams.pollLast();
      if (stream != null) {
        return stream;
      }
    }
    return gpu.betweenKernels(gpu.context()::stream);
  }

  /** Takes a stream back in which nothing is under way. */
  void giveStream(CudaStream stream) {
    try (var _ = lock.hold()) {
      if (streams.size() < MOST_STREAMS) {
        streams.addLast(stream);
        return;
      }
    }
    stream.close();
  }

  /**
   * The threads for files of a block device, for all paths that want as many on the same node. Each
   * path gives them back.
   */
  CopyWorkers takeWorkers(String device, int most, NumaHome near) {
    try (var _ = lock.hold()) {
      CopyWorkers some =
          workers.computeIfAbsent(
              new Serving(device, most, near.toString()), _ -> new CopyWorkers(most, near));
      paths.merge(some, 1, Integer::sum);
      return some;
    }
  }

  /** Takes threads back, and ends them if no other path has them. */
  void giveWorkers(CopyWorkers some) {
    try (var _ = lock.hold()) {
      if (paths.merge(some, -1, Integer::sum) > 0) {
        return;
      }
      paths.remove(some);
      workers.values().remove(some);
    }
    some.close();
  }

  private long bytes() {
    try (var _ = lock.hold()) {
      return kept;
    }
  }

  @Override
  public void freeKept() {
    List<PinnedSlot> slots = new ArrayList<>();
    List<CudaStream> idle;
    try (var _ = lock.hold()) {
      free.values().forEach(slots::addAll);
      free.clear();
      kept = 0;
      idle = List.copyOf(streams);
      streams.clear();
    }
    CloseAll.all(
        () -> CloseAll.each(slots, PinnedSlot::close),
        () -> CloseAll.each(idle, CudaStream::close));
  }

  /** Frees what is kept. For the owner of a stock that is not shared, when nothing is in use. */
  @Override
  public void close() {
    freeKept();
  }
}
