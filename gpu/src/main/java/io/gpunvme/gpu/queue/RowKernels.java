package io.gpunvme.gpu.queue;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaAttribute;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.KernelRun;
import io.gpunvme.nvme.NvmeTimeoutException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The kernels of {@link DeviceRows} of one cache ({@code kernels/rows.cu}). They run in streams of
 * the callers', who go on at once; a thread waits for them here, because nothing else ends a kernel
 * whose SSD does not answer. Safe for all threads.
 */
final class RowKernels implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger("io.gpunvme.gpu.queue");

  private static final int BLOCK_THREADS = 256;
  private static final int WARP = 32;

  /** What a lane copies at a time. */
  private static final int VECTOR = 16;

  /** Frames for each that a thread may hold at a time, so that nobody waits for one for long. */
  private static final int FRAMES_PER_PIN = 4;

  /** Of the multiprocessors, one in so many fetches, to leave the others to kernels beside it. */
  private static final int FETCH_SHARE = 4;

  private static final long SPIN_NANOS = 200_000;
  private static final long NAP_NANOS = 50_000;
  private static final long MILLI = 1_000_000;

  private static final long IDLE_MILLIS = 1000;

  /** How long the storage sees one kernel in all that follow each other. */
  private static final long DRAIN_NANOS = 1_000_000_000;

  // struct RowTrouble of the kernels: one for each launch that is not over.
  private static final int TROUBLE_SIZE = 16;
  private static final int TROUBLE_COUNT = 0;
  private static final int TROUBLE_STATUS = 4;
  private static final int TROUBLE_ID = 8;
  private static final int LAUNCHES = 256;

  // struct RowArgs of the kernels.
  private static final long ARGS = 64;
  private static final long ARGS_ARRAY = 0;
  private static final long ARGS_IDS = 8;
  private static final long ARGS_COUNT = 16;
  private static final long ARGS_ROWS = 24;
  private static final long ARGS_ROW_BYTES = 32;
  private static final long ARGS_MEMORY = 40;
  private static final long ARGS_TROUBLE = 48;
  private static final long ARGS_AHEAD = 56;
  private static final long ARGS_LANES = 60;

  enum Kernel {
    GATHER,
    FETCH,
    UPDATE
  }

  private final KernelStorage storage;
  private final GpuAccelerator gpu;

  /** In the order of {@link Kernel}. */
  private final List<CudaFunction> functions = new ArrayList<>();

  private final DeviceBuffer troubles;
  private final long frames;
  private final int mostWarps;
  private final int mostFetchingWarps;

  // All below is guarded by this.

  private final ArrayDeque<Integer> freeTroubles = new ArrayDeque<>();
  private final ArrayDeque<CudaEvent> freeEvents = new ArrayDeque<>();
  private final List<Launch> launches = new ArrayList<>();
  private @Nullable Thread watcher;

  /** The watcher waits, so that the storage has a kernel that is waited for. */
  private boolean watching;

  /** Since when it does. */
  private long watchingSince;

  /**
   * Nothing is started until all is over. Otherwise kernels that always follow each other would be
   * one that never ends: to a storage that has told them to stop, a hung one.
   */
  private boolean draining;

  /** Kernels that are over, which the storage still counts: the watcher tells it. */
  private int untold;

  /** Nothing is started any more, unless {@link #ended} is false. */
  private boolean closed;

  /** It is not opened again. */
  private boolean ended;

  /** Of the last launch. */
  private long number;

  /** Of an update that nobody who flushes was told of. */
  private @Nullable RuntimeException updateFailure;

  /** A kernel hung, or the GPU failed: nothing can be started any more. */
  private @Nullable RuntimeException end;

  /** A kernel that is not known to be over. */
  private record Launch(
      DeviceRows rows, Kernel kernel, long number, int trouble, CudaEvent event, KernelRun run) {}

  /**
   * Loads the kernels.
   *
   * @param frames of the cache
   * @throws InvalidRequestException if the accelerator is no GPU that kernels can be launched on
   */
  RowKernels(KernelStorage storage, Accelerator accelerator, long frames) {
    this.storage = storage;
    this.frames = frames;
    gpu =
        accelerator
            .cuda()
            .orElseThrow(
                () ->
                    new InvalidRequestException(
                        "rows are gathered by kernels of a GPU, and this is "
                            + accelerator.name()));
    GpuModule module = GpuModule.resource(gpu, "rows");
    for (Kernel kernel : Kernel.values()) {
      String name = "gpunvme_%s_rows".formatted(kernel.name().toLowerCase(Locale.ROOT));
      functions.add(module.function(name));
    }
    int sms = gpu.context().device().attribute(CudaAttribute.MULTIPROCESSOR_COUNT);
    int blocks = functions.getFirst().maxActiveBlocks(BLOCK_THREADS, 0);
    mostWarps = sms * Math.max(1, blocks) * BLOCK_THREADS / WARP;
    mostFetchingWarps = Math.max(1, sms / FETCH_SHARE) * BLOCK_THREADS / WARP;
    troubles = gpu.allocatePinned((long) LAUNCHES * TROUBLE_SIZE);
    for (int i = 0; i < LAUNCHES; i++) {
      freeTroubles.add(i);
    }
  }

  /** Puts a kernel into a stream; the rows are told how it went. */
  void launch(
      DeviceRows rows, Kernel kernel, CudaStream stream, long ids, long count, long memory) {
    if (stream.isCapturing()) {
      throw new InvalidRequestException(
          "rows cannot be moved in a stream that is being captured: a graph would wait for SSDs,"
              + " and nobody for the graph");
    }
    // Not under the lock: both may wait until kernels are over, and they are not before that is
    // told.
    storage.beginKernel();
    try {
      CudaEvent event = takeEvent();
      KernelRun run = gpu.kernelRun(event::isDone);
      try {
        start(rows, kernel, stream, shape(kernel, ids, count, memory), event, run);
      } catch (RuntimeException | Error e) {
        run.close();
        giveBack(event);
        throw e;
      }
    } catch (RuntimeException | Error e) {
      storage.endOfKernel();
      throw e;
    }
  }

  private synchronized void giveBack(CudaEvent event) {
    freeEvents.add(event);
  }

  private synchronized CudaEvent takeEvent() {
    requireUsable();
    return freeEvents.isEmpty() ? gpu.context().event() : freeEvents.remove();
  }

  /** A kernel's grid and its arguments, without the place for what goes wrong. */
  private record Shape(long warps, int ahead, long ids, long count, long memory) {}

  private Shape shape(Kernel kernel, long ids, long count, long memory) {
    int most = kernel == Kernel.FETCH ? mostFetchingWarps : mostWarps;
    long pins = Math.max(1, frames / FRAMES_PER_PIN);
    long warps = Math.min(count, Math.min(most, pins));
    long each = Math.min(Math.ceilDiv(count, warps), pins / warps);
    return new Shape(warps, Math.clamp(each, 1, WARP), ids, count, memory);
  }

  private synchronized void start(
      DeviceRows rows,
      Kernel kernel,
      CudaStream stream,
      Shape shape,
      CudaEvent event,
      KernelRun run) {
    awaitUntil(all -> !freeTroubles.isEmpty() && !draining);
    requireUsable();
    // Before the kernel: without it nobody would end that.
    if (watcher == null) {
      watcher = Thread.ofPlatform().daemon().name("gpunvme-rows").start(this::watch);
    }
    int trouble = freeTroubles.element();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment args = arena.allocate(ARGS, Long.BYTES);
      DeviceLayout.setLong(args, ARGS_ARRAY, rows.array());
      DeviceLayout.setLong(args, ARGS_IDS, shape.ids);
      DeviceLayout.setLong(args, ARGS_COUNT, shape.count);
      DeviceLayout.setLong(args, ARGS_ROWS, rows.count());
      DeviceLayout.setLong(args, ARGS_ROW_BYTES, rows.rowBytes());
      DeviceLayout.setLong(args, ARGS_MEMORY, shape.memory);
      DeviceLayout.setLong(args, ARGS_TROUBLE, troubles.deviceAddress() + at(trouble));
      DeviceLayout.setInt(args, ARGS_AHEAD, shape.ahead);
      DeviceLayout.setInt(args, ARGS_LANES, lanes(rows.rowBytes()));
      int threads = (int) Math.min(shape.warps * WARP, BLOCK_THREADS);
      stream.launch(
          functions.get(kernel.ordinal()),
          LaunchShape.of((int) Math.ceilDiv(shape.warps * WARP, (long) threads), threads),
          new KernelArguments().addStruct(args));
    }
    freeTroubles.remove();
    launches.add(new Launch(rows, kernel, ++number, trouble, event, run));
    notifyAll();
    try {
      stream.record(event);
    } catch (RuntimeException e) {
      loseSight(e);
    } catch (Error e) {
      loseSight(new IllegalStateException("the end of a kernel that moves rows is not known", e));
    }
  }

  /** A kernel runs, and nobody will know when it is over: as if it hung. */
  private void loseSight(RuntimeException e) {
    storage.abandon();
    giveUp(e);
  }

  private static long at(int trouble) {
    return (long) trouble * TROUBLE_SIZE;
  }

  /** So many lanes that each has something to copy of a row: a power of two. */
  private static int lanes(long rowBytes) {
    int vectors = Math.clamp(Math.ceilDiv(rowBytes, VECTOR), 1, WARP);
    return vectors == 1 ? 1 : 2 * Integer.highestOneBit(vectors - 1);
  }

  private void requireUsable() {
    storage.requireOpen();
    if (end != null) {
      throw end;
    }
    if (closed) {
      throw new IllegalStateException("this cache is closed");
    }
  }

  // ---- waiting

  private void watch() {
    while (somethingRuns()) {
      try {
        storage.await(this::allOver, Duration.ofNanos(Long.MAX_VALUE));
      } catch (RuntimeException e) {
        if (runs() || storage.isHung()) {
          giveUp(e);
          return;
        }
        // What was looked at beside them has failed, and they have ended.
        LOG.log(System.Logger.Level.WARNING, "beside kernels that move rows", e);
      } catch (Error e) {
        giveUp(new IllegalStateException("the wait for kernels that move rows failed", e));
        throw e;
      }
      endOfWait();
    }
  }

  private synchronized boolean runs() {
    return !launches.isEmpty();
  }

  /** The storage's lock comes before this one's. */
  private void endOfWait() {
    int over;
    synchronized (this) {
      over = untold;
      untold = 0;
    }
    for (int i = 0; i < over; i++) {
      storage.endOfKernel();
    }
    synchronized (this) {
      watching = false;
      notifyAll();
    }
  }

  /** False ends the watcher: nothing was started for a while. */
  private synchronized boolean somethingRuns() {
    long limit = System.nanoTime() + IDLE_MILLIS * 1_000_000;
    try {
      for (long left = IDLE_MILLIS; isIdle() && left > 0 && !closed; ) {
        wait(left);
        left = (limit - System.nanoTime()) / 1_000_000;
      }
    } catch (InterruptedException e) {
      // Nobody interrupts it.
      Thread.currentThread().interrupt();
    }
    if (isIdle()) {
      watcher = null;
      return false;
    }
    watching = true;
    watchingSince = System.nanoTime();
    return true;
  }

  private boolean isIdle() {
    return launches.isEmpty() && untold == 0;
  }

  private synchronized boolean allOver() {
    boolean some = false;
    for (Iterator<Launch> i = launches.iterator(); i.hasNext(); ) {
      Launch launch = i.next();
      if (launch.event.isDone()) {
        i.remove();
        over(launch);
        some = true;
      }
    }
    draining =
        !launches.isEmpty()
            && (draining || (watching && System.nanoTime() - watchingSince > DRAIN_NANOS));
    if (some) {
      notifyAll();
    }
    return launches.isEmpty();
  }

  private void over(Launch launch) {
    untold++;
    launch.run.close();
    freeEvents.add(launch.event);
    MemorySegment trouble = troubles.segment().asSlice(at(launch.trouble), TROUBLE_SIZE);
    int count = DeviceLayout.getInt(trouble, TROUBLE_COUNT);
    if (count != 0) {
      int status = DeviceLayout.getInt(trouble, TROUBLE_STATUS);
      long id = DeviceLayout.getLong(trouble, TROUBLE_ID);
      RowsFailedException failure = new RowsFailedException(status, id, count, launch.rows.count());
      launch.rows.failed(failure);
      if (launch.kernel == Kernel.UPDATE && updateFailure == null) {
        updateFailure = failure;
      }
      DeviceLayout.setInt(trouble, TROUBLE_COUNT, 0);
    }
    freeTroubles.add(launch.trouble);
  }

  /** A kernel that does not end, or a GPU that failed. What it uses is never freed. */
  private synchronized void giveUp(RuntimeException e) {
    end = e;
    launches.forEach(launch -> launch.rows.failed(e));
    launches.clear();
    watcher = null;
    watching = false;
    draining = false;
    notifyAll();
  }

  /**
   * Returns when all kernels of these rows are over that were started before: it looks by itself,
   * to know at once.
   */
  void awaitAll(DeviceRows rows) {
    long last = lastNumber();
    long start = System.nanoTime();
    while (isRunning(rows, last)) {
      if (System.nanoTime() - start < SPIN_NANOS) {
        Thread.onSpinWait();
      } else {
        LockSupport.parkNanos(NAP_NANOS);
      }
    }
  }

  private synchronized long lastNumber() {
    return number;
  }

  private synchronized boolean isRunning(DeviceRows rows, long last) {
    return end == null
        && !allOver()
        && launches.stream().anyMatch(launch -> launch.rows == rows && launch.number <= last);
  }

  /**
   * Returns when all updates are over that were started before.
   *
   * @param deadline of {@link System#nanoTime}
   * @throws NvmeTimeoutException if they are not in time
   */
  synchronized void awaitUpdates(long deadline) {
    long last = number;
    boolean over =
        awaitUntil(
            all -> all.stream().noneMatch(l -> l.kernel == Kernel.UPDATE && l.number <= last),
            deadline);
    if (!over) {
      throw new NvmeTimeoutException("rows are being updated still; flush again");
    }
    if (end != null) {
      throw end;
    }
  }

  /**
   * Tells once of updates that have failed.
   *
   * @throws RowsFailedException if there are any, of which their callers were not told either
   */
  synchronized void checkUpdates() {
    RuntimeException told = updateFailure;
    updateFailure = null;
    if (told != null) {
      throw told;
    }
  }

  /** A caller knows of this. */
  synchronized void told(RuntimeException failure) {
    if (updateFailure == failure) {
      updateFailure = null;
    }
  }

  /** Returns when all that was started before is over. */
  synchronized void awaitStarted() {
    long last = number;
    awaitUntil(all -> all.stream().noneMatch(launch -> launch.number <= last));
  }

  /** Where nothing runs, returns once the storage has no kernel of these that is waited for. */
  synchronized void settle() {
    awaitUntil(all -> !all.isEmpty() || isSettled());
  }

  private boolean isSettled() {
    return isIdle() && !watching;
  }

  /**
   * From now on nothing can be started; returns when nothing runs.
   *
   * @param forGood whether {@link #reopen} changes nothing
   */
  synchronized void shut(boolean forGood) {
    closed = true;
    ended |= forGood;
    notifyAll();
    awaitUntil(all -> isSettled());
  }

  /** It stays open after all. */
  synchronized void reopen() {
    closed = ended;
  }

  /** Kernels end by themselves, or are stopped; so this ends. */
  private void awaitUntil(Predicate<List<Launch>> condition) {
    awaitUntil(condition, System.nanoTime() + Long.MAX_VALUE);
  }

  /** False if it is not so at the deadline, and nothing has ended all. */
  private boolean awaitUntil(Predicate<List<Launch>> condition, long deadline) {
    boolean interrupted = false;
    boolean met = condition.test(launches);
    for (long left = deadline - System.nanoTime(); !met && end == null && left > 0; ) {
      try {
        TimeUnit.NANOSECONDS.timedWait(this, Math.max(left, MILLI));
      } catch (InterruptedException e) {
        interrupted = true;
      }
      met = condition.test(launches);
      left = deadline - System.nanoTime();
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    return met || end != null;
  }

  /** Frees what it has. It was shut. */
  @Override
  public synchronized void close() {
    if (end == null) {
      freeEvents.forEach(CudaEvent::close);
      freeEvents.clear();
      troubles.close();
    }
  }
}
