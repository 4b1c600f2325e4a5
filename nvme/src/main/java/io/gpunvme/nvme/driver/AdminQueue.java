package io.gpunvme.nvme.driver;

import io.gpunvme.ffi.Mapping;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The admin queue pair as a synchronous call: any number of threads execute commands at the same
 * time, each waiting for its own. Asynchronous Event Requests are outstanding at the same time.
 *
 * <p>Each waiting thread also polls, for all threads. A command that outlives its deadline, a fatal
 * error or the device's disappearance resets the controller (an Abort would need the same queue)
 * and then fails with a typed exception; when a call has returned or thrown, the controller no
 * longer touches its data.
 */
public final class AdminQueue {
  /** What the owner of the controller does when the admin queue cannot go on by itself. */
  interface Rescue {
    /**
     * Resets the controller unless {@code needed} turns false while waiting for the turn. Never
     * throws; afterwards the controller does no DMA for older commands.
     *
     * @return what came of it, for the exception's message
     */
    String reset(String why, BooleanSupplier needed);

    /** Stops all DMA by the controller: a reset has failed. */
    void quiesce();
  }

  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private final QueuePair queue;
  private final PciFunction function;
  private final ControllerRegisters registers;
  private final Rescue rescue;
  private final IntConsumer eventSink;
  private final long timeoutNanos;
  private final CompletionSink sink = this::completed;
  private final @Nullable AdminRequest[] pending;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition available = lock.newCondition();
  private @Nullable Thread resetting;
  private @Nullable RuntimeException outOfService;

  /**
   * @param eventSink is given dword 0 of every asynchronous event, with the lock held
   */
  AdminQueue(
      QueuePair queue,
      PciFunction function,
      ControllerRegisters registers,
      Rescue rescue,
      IntConsumer eventSink) {
    this.queue = queue;
    this.function = function;
    this.registers = registers;
    this.rescue = rescue;
    this.eventSink = eventSink;
    this.timeoutNanos = queue.timeoutNanos();
    this.pending = new AdminRequest[queue.depth()];
  }

  // ---- commands

  /**
   * Executes a command without data.
   *
   * @param sqe 64 bytes in the layout of {@link io.gpunvme.nvme.spec.Sqe}, 8-byte aligned; CID is
   *     filled in
   * @return dword 0 of the completion
   * @throws NvmeStatusException if the controller answers with an error
   */
  public int execute(MemorySegment sqe) {
    return execute(new AdminRequest(sqe, null, 0), timeoutNanos);
  }

  /**
   * Executes a command that moves data.
   *
   * @param sqe 64 bytes in the layout of {@link io.gpunvme.nvme.spec.Sqe}, 8-byte aligned; CID and
   *     data pointer are filled in
   * @param data memory the command reads or writes from its first byte on
   * @param bytes how many, at most 65536 and MDTS
   * @return dword 0 of the completion
   * @throws NvmeStatusException if the controller answers with an error
   * @throws NvmeTimeoutException if it does not answer; the controller has been reset then
   * @throws CommandAbortedException if a reset by another caller ended the command
   */
  public int execute(MemorySegment sqe, DmaBuffer data, long bytes) {
    return execute(new AdminRequest(sqe, data.range(), bytes), timeoutNanos);
  }

  int execute(AdminCommand command) {
    return execute(command.sqe());
  }

  /** Executes a command with a deadline of its own. */
  int execute(AdminCommand command, long nanos) {
    return execute(new AdminRequest(command.sqe(), null, 0), nanos);
  }

  /** Executes a command that returns {@code bytes} of data; a read-only copy on the heap. */
  MemorySegment fetch(AdminCommand command, int bytes) {
    MemorySegment copy = MemorySegment.ofArray(new byte[bytes]);
    try (DmaBuffer buffer = allocate(bytes)) {
      execute(command.sqe(), buffer, bytes);
      MemorySegment.copy(buffer.memory(), 0, copy, 0, bytes);
    }
    return copy.asReadOnly();
  }

  /** Zeroed memory for a command's data. */
  DmaBuffer allocate(long bytes) {
    return DmaBuffer.allocate(function, bytes);
  }

  private int execute(AdminRequest p, long nanos) {
    long start = System.nanoTime();
    submit(p, start, nanos);
    Backoff backoff = new Backoff();
    long looked = start;
    while (!pollFor(p)) {
      long now = System.nanoTime();
      if (now - start >= nanos) {
        throw expired(p, nanos);
      }
      if (now - looked >= LOOK_NANOS) {
        looked = now;
        if (registers.troubled()) {
          throw troubled(p);
        }
      }
      backoff.pause();
    }
    return result(p);
  }

  private void submit(AdminRequest p, long start, long nanos) {
    Backoff backoff = new Backoff();
    while (!trySubmit(p, nanos)) {
      if (System.nanoTime() - start >= nanos) {
        throw new NvmeTimeoutException(
            AdminOpcode.name(p.opcode)
                + " was not sent: no slot of the admin queue became free within "
                + nanos / 1_000_000
                + " ms");
      }
      backoff.pause();
    }
  }

  private boolean trySubmit(AdminRequest p, long waitNanos) {
    lock.lock();
    try {
      awaitService(waitNanos);
      takeIn();
      int slot = queue.submit(p.sqe, p.data, 0, p.bytes, 0);
      if (slot < 0) {
        return false;
      }
      p.slot = slot;
      pending[slot] = p;
      ring();
      return true;
    } finally {
      lock.unlock();
    }
  }

  /** Called with the lock held: waits until no other thread is resetting the controller. */
  private void awaitService(long nanos) {
    long left = nanos;
    while (resetting != null && !isResetting()) {
      if (left <= 0) {
        throw new NvmeTimeoutException(
            "the controller is still being reset after " + nanos / 1_000_000 + " ms");
      }
      try {
        left = available.awaitNanos(left);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new CommandAbortedException("interrupted while the controller was being reset");
      }
    }
    RuntimeException reason = outOfService;
    if (reason != null && resetting == null) {
      throw Failures.again(reason);
    }
  }

  private boolean pollFor(AdminRequest p) {
    lock.lock();
    try {
      if (!p.done && mayPoll()) {
        takeIn();
      }
      return p.done;
    } finally {
      lock.unlock();
    }
  }

  private void takeIn() {
    try {
      queue.poll(sink);
      Mapping.meetFaults();
    } catch (InternalError e) {
      doorbellsGone(e);
    }
  }

  private void ring() {
    try {
      queue.ring();
      Mapping.meetFaults();
    } catch (InternalError e) {
      doorbellsGone(e);
    }
  }

  /** Whoever waits for a command finds registers that read all ones, as of a device pulled. */
  private void doorbellsGone(InternalError fault) {
    if (!function.memoryGone()) {
      throw fault;
    }
  }

  /** Whether the calling thread is the one that resets the controller. */
  private boolean isResetting() {
    return Thread.currentThread().equals(resetting);
  }

  private boolean mayPoll() {
    return outOfService == null ? resetting == null || isResetting() : isResetting();
  }

  private void completed(QueuePair q, int slot, int status) {
    AdminRequest p = pending[slot];
    pending[slot] = null;
    if (p == null) {
      return;
    }
    p.status = status;
    p.dw0 = q.dw0(slot);
    p.cid = q.cid(slot);
    p.endedByHost = q.state() != QueuePair.State.READY;
    p.done = true;
    if (p.opcode == AdminOpcode.ASYNC_EVENT_REQUEST && Status.ok(status)) {
      eventSink.accept(p.dw0);
    }
  }

  private int result(AdminRequest p) {
    if (p.endedByHost) {
      throw new CommandAbortedException(
          AdminOpcode.name(p.opcode)
              + " (admin queue, CID "
              + p.cid
              + ") was ended because the controller was reset or closed");
    }
    if (!Status.ok(p.status)) {
      throw new NvmeStatusException(p.status, p.opcode, queue.qid(), p.cid, p.nsid, -1);
    }
    return p.dw0;
  }

  // ---- trouble

  private NvmeException expired(AdminRequest p, long nanos) {
    String what =
        "%s did not complete within %d ms; %s"
            .formatted(AdminOpcode.name(p.opcode), nanos / 1_000_000, registers.describe());
    NvmeTimeoutException timeout = new NvmeTimeoutException(what + "; " + giveUp(p, what));
    lock.lock();
    try {
      // What the reset has found: perhaps that the controller is gone.
      return outOfService == null ? timeout : (NvmeException) timeout.initCause(outOfService);
    } finally {
      lock.unlock();
    }
  }

  private NvmeException troubled(AdminRequest p) {
    String what = "while waiting for " + AdminOpcode.name(p.opcode);
    try {
      registers.requireAlive(what);
    } catch (DeviceGoneException e) {
      giveUp(p, e.getMessage());
      return e;
    } catch (ControllerFatalException e) {
      return new ControllerFatalException(e.getMessage() + "; " + giveUp(p, e.getMessage()));
    }
    return new ControllerFatalException(what + ": a fatal error came and went; " + giveUp(p, what));
  }

  /** Afterwards the controller does not touch the command's data any more. */
  private String giveUp(AdminRequest p, @Nullable String why) {
    boolean mine;
    lock.lock();
    try {
      mine = isResetting();
      if (!p.done) {
        queue.quarantine(p.slot);
      }
    } finally {
      lock.unlock();
    }
    if (mine) {
      rescue.quiesce();
      return "this happened while resetting the controller";
    }
    return rescue.reset(String.valueOf(why), () -> !isDone(p));
  }

  private boolean isDone(AdminRequest p) {
    lock.lock();
    try {
      return p.done;
    } finally {
      lock.unlock();
    }
  }

  // ---- events

  /**
   * Sends one Asynchronous Event Request; its completion goes to the event sink.
   *
   * @return false if no slot was free: nothing was sent
   */
  boolean requestEvent() {
    AdminCommand command = AdminCommand.of(AdminOpcode.ASYNC_EVENT_REQUEST);
    return trySubmit(new AdminRequest(command.sqe(), null, 0), timeoutNanos);
  }

  /** Takes in what has completed, without waiting. */
  void poll() {
    lock.lock();
    try {
      if (mayPoll()) {
        takeIn();
      }
    } finally {
      lock.unlock();
    }
  }

  // ---- life cycle, called by the controller's owner with its own lock held

  /** From here on only the calling thread may use the queue; others wait for {@link #endReset}. */
  void beginReset() {
    lock.lock();
    try {
      resetting = Thread.currentThread();
      queue.breakQueue();
    } finally {
      lock.unlock();
    }
  }

  /** Ends every outstanding command; the controller must not be able to touch their data. */
  void endOutstanding() {
    lock.lock();
    try {
      queue.breakQueue();
      queue.failAll(StatusCode.ABORTED_BY_HOST.status(), sink);
    } finally {
      lock.unlock();
    }
  }

  /**
   * Lets the other threads on.
   *
   * @param failure why the queue is out of service now, or null if it works
   */
  void endReset(@Nullable RuntimeException failure) {
    lock.lock();
    try {
      resetting = null;
      outOfService = failure;
      available.signalAll();
    } finally {
      lock.unlock();
    }
  }

  QueuePair queue() {
    return queue;
  }

  void close() {
    lock.lock();
    try {
      queue.close();
    } finally {
      lock.unlock();
    }
  }
}
