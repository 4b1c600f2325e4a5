package io.gpunvme.storage.path.pinned;

import io.gpunvme.cuda.CudaException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.IoUring;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.PathCounters;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.file.FileErrors;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/**
 * One thread's part of a transfer: it takes loads from the list and keeps as many I/Os in flight as
 * its {@link LaneIo} can. A load that is read has its I/Os done in a slot, then is copied to its
 * buffers while the next are read; one that is written is copied first.
 *
 * <p>Whatever happens, nothing is in flight and no slot is held when {@link #run} returns.
 */
final class PinnedLane {
  /** Loads that a lane has at a time, at most: numbers that fit the tokens. */
  private static final int MOST_JOBS = 256;

  private static final int JOB_SHIFT = 32;

  private final Transfer transfer;
  private final IoList list;
  private final int fd;
  private final int alignment;
  private final LaneIo io;
  private final SlotPool pool;
  private final Copies copies;
  private final PathCounters counters;
  private final IoUring.Completions completions = this::completed;

  /** The loads at work, by a number that is in the tokens of their I/Os. */
  private final Job[] jobs;

  private final Deque<Integer> freeJobs = new ArrayDeque<>();

  /** Loads with I/Os not started yet, and I/Os to be gone on with; both before new loads. */
  private final Deque<Job> starting = new ArrayDeque<>();

  private final Deque<Long> repeats = new ArrayDeque<>();

  /** Loads whose copies are in the background, the oldest first. */
  private final Deque<Job> copying = new ArrayDeque<>();

  /** A load that was taken and has no slot yet, or -1. */
  private int waitingLoad = -1;

  private int working;

  /** I/Os of the loads at work that were not started yet. */
  private int unstarted;

  private int inFlight;

  /** A load at work. */
  private static final class Job {
    private final int number;
    private final int load;
    private final @Nullable PinnedSlot slot;
    private final long[] started;
    private int nextIo;
    private int unfinished;

    Job(int number, int load, @Nullable PinnedSlot slot, int first, int end) {
      this.number = number;
      this.load = load;
      this.slot = slot;
      nextIo = first;
      unfinished = end - first;
      started = new long[unfinished];
    }
  }

  /**
   * @param fd where I/O goes
   * @param alignment of I/O there; 1 for none
   */
  PinnedLane(
      Transfer transfer,
      IoList list,
      int fd,
      int alignment,
      LaneIo io,
      SlotPool pool,
      Copies copies) {
    this.transfer = transfer;
    this.list = list;
    this.fd = fd;
    this.alignment = alignment;
    this.io = io;
    this.pool = pool;
    this.copies = copies;
    counters = transfer.call().counters();
    jobs = new Job[Math.min(MOST_JOBS, list.loads())];
    for (int i = jobs.length - 1; i >= 0; i--) {
      freeJobs.push(i);
    }
  }

  /** Works until all loads are taken and those taken here are done, or the transfer has failed. */
  void run() {
    try {
      while (step()) {
        // Everything is in the step.
      }
    } catch (StorageException e) {
      transfer.fail(e);
    } catch (CudaException e) {
      transfer.fail(accelerator(e));
    } catch (PosixException e) {
      transfer.fail(FileErrors.of(transfer.call().source(), e));
    } finally {
      drain();
    }
  }

  private StorageException accelerator(CudaException e) {
    Kind kind =
        e.code() == CudaException.OUT_OF_MEMORY ? Kind.ACCELERATOR_MEMORY : Kind.ACCELERATOR;
    return new StorageException(
        kind, transfer.call().source(), -1, -1, String.valueOf(e.getMessage()), e);
  }

  /** Whether there is more to do. */
  private boolean step() {
    retireCopied();
    boolean stopped = transfer.isStopped();
    if (!stopped) {
      takeLoads();
      startIos();
    }
    if (inFlight > 0) {
      io.await(completions);
      return true;
    }
    if (stopped) {
      cancelled();
      return false;
    }
    if (!copying.isEmpty()) {
      copies.await(slot(copying.getFirst()));
      return true;
    }
    return hasWork();
  }

  private void cancelled() {
    if (transfer.call().isCancelled() && hasWork()) {
      transfer.fail(
          new StorageException(
              Kind.CANCELLED, transfer.call().source(), -1, -1, "cancelled", null));
    }
  }

  private boolean hasWork() {
    return working > 0 || waitingLoad >= 0 || !list.isExhausted();
  }

  // ---- loads

  /** Takes loads for as long as more I/Os could be in flight than there are. */
  private void takeLoads() {
    while (inFlight + unstarted < io.depth() && !freeJobs.isEmpty()) {
      if (waitingLoad < 0) {
        waitingLoad = list.take();
      }
      if (waitingLoad < 0) {
        return;
      }
      PinnedSlot slot = null;
      if (list.isStaged(waitingLoad)) {
        // Who waits for a slot holds none, so that those who hold some go on.
        slot = working == 0 ? pool.acquire() : pool.tryAcquire();
        if (slot == null) {
          return;
        }
      }
      int load = waitingLoad;
      waitingLoad = -1;
      begin(load, slot);
    }
  }

  private void begin(int load, @Nullable PinnedSlot slot) {
    Job job = new Job(freeJobs.pop(), load, slot, list.first(load), list.end(load));
    jobs[job.number] = job;
    working++;
    unstarted += job.unfinished;
    if (transfer.isWrite() && slot != null) {
      copyIn(job, slot);
      copying.addLast(job);
    } else {
      starting.addLast(job);
    }
  }

  private static PinnedSlot slot(Job job) {
    if (job.slot == null) {
      throw new IllegalStateException("a load without a slot cannot be copied");
    }
    return job.slot;
  }

  private void copyIn(Job job, PinnedSlot slot) {
    for (int i = list.first(job.load); i < list.end(job.load); i++) {
      if (!list.isStraight(i)) {
        DeviceBuffer buffer = transfer.range(list.range(i)).buffer();
        copies.toSlot(slot, list.place(i), list.length(i), buffer, list.bufferOffset(i));
      }
    }
    copies.seal(slot);
  }

  private void copyOut(Job job, PinnedSlot slot) {
    for (int i = list.first(job.load); i < list.end(job.load); i++) {
      if (!list.isStraight(i)) {
        DeviceBuffer buffer = transfer.range(list.range(i)).buffer();
        long at = (long) list.place(i) + list.skip(i);
        copies.toBuffer(buffer, list.bufferOffset(i), slot, at, list.wanted(i));
      }
    }
    copies.seal(slot);
  }

  /** Goes on with the loads whose copies are done. */
  private void retireCopied() {
    while (!copying.isEmpty() && copies.isDone(slot(copying.getFirst()))) {
      Job job = copying.removeFirst();
      if (transfer.isWrite()) {
        starting.addLast(job);
      } else {
        finish(job);
      }
    }
  }

  private void ioDone(Job job) {
    if (transfer.isWrite() || job.slot == null) {
      finish(job);
    } else if (!transfer.isStopped()) {
      copyOut(job, job.slot);
      copying.addLast(job);
    }
  }

  private void finish(Job job) {
    long bytes = 0;
    long staged = 0;
    long over = 0;
    for (int i = list.first(job.load); i < list.end(job.load); i++) {
      bytes += list.wanted(i);
      staged += list.isStraight(i) ? 0 : list.wanted(i);
      over += list.done(i) - list.wanted(i);
    }
    counters.moved(transfer.isWrite() ? Direction.WRITE : Direction.READ, bytes);
    counters.staged(staged);
    counters.overread(over);
    forget(job);
  }

  private void forget(Job job) {
    jobs[job.number] = null;
    freeJobs.push(job.number);
    working--;
    if (job.slot != null) {
      pool.release(job.slot);
    }
  }

  // ---- I/Os

  private void startIos() {
    while (inFlight < io.depth() && !repeats.isEmpty()) {
      long token = repeats.removeFirst();
      start(jobs[(int) (token >>> JOB_SHIFT)], (int) token);
    }
    while (inFlight < io.depth() && !starting.isEmpty()) {
      Job job = starting.getFirst();
      int next = job.nextIo++;
      unstarted--;
      if (job.nextIo == list.end(job.load)) {
        starting.removeFirst();
      }
      start(job, next);
    }
  }

  private void start(Job job, int i) {
    int done = list.done(i);
    int length = list.length(i) - done;
    MemorySegment memory;
    if (list.isStraight(i)) {
      Range range = transfer.range(list.range(i));
      memory = range.buffer().segment().asSlice(list.bufferOffset(i) + done, length);
    } else {
      memory = slot(job).segment().asSlice((long) list.place(i) + done, length);
    }
    long token = (long) job.number << JOB_SHIFT | i;
    job.started[i - list.first(job.load)] = System.nanoTime();
    io.start(transfer.isWrite(), fd, memory, list.offset(i) + done, token);
    inFlight++;
  }

  private void completed(long token, int result) {
    inFlight--;
    Job job = jobs[(int) (token >>> JOB_SHIFT)];
    int i = (int) token;
    transfer.call().operation(System.nanoTime() - job.started[i - list.first(job.load)]);
    if (result == -Errno.EINTR || result == -Errno.EAGAIN) {
      repeat(token);
    } else if (result < 0) {
      String call = transfer.isWrite() ? "write" : "read";
      long at = list.offset(i) + list.done(i);
      int length = list.length(i) - list.done(i);
      transfer.fail(FileErrors.of(transfer.call().source(), at, length, call, -result));
    } else {
      moved(job, i, result, token);
    }
  }

  private void repeat(long token) {
    transfer.call().retried(1);
    repeats.addLast(token);
  }

  private void moved(Job job, int i, int bytes, long token) {
    int done = list.done(i) + bytes;
    if (done >= list.skip(i) + list.wanted(i)) {
      list.setDone(i, done);
      job.unfinished--;
      if (job.unfinished == 0) {
        ioDone(job);
      }
      return;
    }
    // It ended early: go on from the last whole block, unless there was none.
    int whole = done & -alignment;
    if (whole <= list.done(i)) {
      transfer.fail(early(i, done));
      return;
    }
    list.setDone(i, whole);
    repeat(token);
  }

  private StorageException early(int i, int done) {
    String source = transfer.call().source();
    long at = list.offset(i) + Math.max(done, list.skip(i));
    long missing = list.offset(i) + list.skip(i) + list.wanted(i) - at;
    return transfer.isWrite()
        ? new StorageException(
            Kind.IO, source, at, missing, "the kernel wrote nothing; check the device", null)
        : new StorageException(
            Kind.SHORT_READ,
            source,
            at,
            missing,
            "the file ends here; it became shorter while it was read",
            null);
  }

  // ---- the end

  /** After the last step, or a failure: waits for what is in flight and gives all slots back. */
  private void drain() {
    io.settle();
    if (working > 0) {
      copies.abandon();
      for (Job job : jobs) {
        if (job != null) {
          forget(job);
        }
      }
    }
  }
}
