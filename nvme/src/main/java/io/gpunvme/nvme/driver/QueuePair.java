package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.DataPointerBuilder;
import io.gpunvme.nvme.pci.DoorbellPoller;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.Status;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * One submission queue and one completion queue (Base 2.0, 3.3), driven by one thread at a time.
 *
 * <p>A command occupies a slot from {@code submit} until its completion was handed to the sink. Its
 * CID is the slot number with a generation above it, so that a late or doubled completion is
 * recognised, counted and ignored. There are fewer slots than ring entries, hence neither ring can
 * overflow and the submission queue head need not be tracked. Doorbells are merged: one store per
 * {@link #ring} and one per {@link #poll}, however many commands they cover.
 *
 * <p>Nothing here allocates after construction, blocks, or takes a lock. Only {@link #breakQueue}
 * and {@link #state} may be called by other threads.
 */
public final class QueuePair extends IoQueuePair implements AutoCloseable {
  /** The state of the queue. */
  public enum State {
    /** Commands may be submitted. */
    READY,
    /**
     * The controller was reset meanwhile, or recovery is running; the owner must recover the queue.
     */
    BROKEN,
    /** Its memory is freed. */
    CLOSED
  }

  private final QueuePairSpec spec;
  private final QueueMemory memory;
  private final MemorySegment sq;
  private final SubmissionRing submission;
  private final CompletionRing completion;
  private final DataPointerBuilder dataPointers;
  private final int depth;
  private final CommandSlots slots;
  private final QueueTraffic traffic;
  private @Nullable String fatal;

  /** When the batch that is being submitted began, nanoseconds. */
  private long batchNanos;

  /** When the last poll met completions, nanoseconds. */
  private long completedNanos;

  private long submitted;
  private long completed;

  /** How many of {@link #submitted} are counted in {@link #traffic}. */
  private long counted;

  // What the present poll has met; counted in traffic at its end.
  private long readBytes;
  private long writtenBytes;
  private long latencyNanos;

  private long stale;
  private long unknown;
  private long malformed;

  /** Written by the control plane (reset, recovery) in any thread, read by the driving one. */
  private final AtomicReference<State> state = new AtomicReference<>(State.BROKEN);

  /**
   * @param doorbells the mapped BAR0 from offset 1000h on, long enough for this queue's doorbells
   * @param poller of the doorbells
   */
  QueuePair(QueuePairSpec spec, BusMapper mapper, MemorySegment doorbells, DoorbellPoller poller) {
    this.spec = spec;
    this.depth = spec.depth();
    this.memory = new QueueMemory(spec, mapper);
    this.sq = memory.sq();
    this.slots = new CommandSlots(depth);
    this.traffic = new QueueTraffic(Integer.toString(spec.qid()), QueueTraffic.Kind.CPU);
    long sqDoorbell = Registers.sqTailDoorbell(spec.qid(), spec.dstrd()) - Registers.DOORBELLS;
    long cqDoorbell = Registers.cqHeadDoorbell(spec.qid(), spec.dstrd()) - Registers.DOORBELLS;
    this.submission = new SubmissionRing(doorbells, sqDoorbell, poller, spec.sqSize());
    this.completion = new CompletionRing(memory.cq(), doorbells, cqDoorbell, spec.qid());
    this.dataPointers = memory.dataPointers();
    rebuild();
  }

  // ---- submission

  /**
   * Writes a Read, Write, Compare or other block command into the submission queue; {@link #ring}
   * makes the controller see it.
   *
   * @param opcode an I/O opcode whose CDW10-12 are SLBA and NLB
   * @param slba first logical block
   * @param blocks number of logical blocks, 1..65536
   * @param cdw12Flags bits to set in CDW12 besides the block count (FUA, LR, DEAC, …)
   * @param data memory read or written; null for commands without data
   * @param dataOffset byte offset in {@code data}, a multiple of 4
   * @param dataBytes bytes moved; at most {@link #maxTransferBytes}
   * @param userData returned by {@link #userData} at completion
   * @return the slot, or -1 if every slot is taken or the queue is not ready
   * @throws io.gpunvme.base.InvalidRequestException if the data cannot be described; nothing is
   *     submitted then
   */
  public int submitIo(
      int opcode,
      int nsid,
      long slba,
      int blocks,
      int cdw12Flags,
      @Nullable BusRange data,
      long dataOffset,
      long dataBytes,
      long userData) {
    int slot = peekFree();
    if (slot < 0) {
      return -1;
    }
    int flags = describe(slot, data, dataOffset, dataBytes);
    int cid = claim(slot, opcode, nsid, slba, data == null ? 0 : dataBytes, userData);
    Sqe.put(
        sq,
        submission.tailOffset(),
        Sqe.cdw0(opcode, flags, cid),
        nsid,
        0,
        data == null ? 0 : dataPointers.dptr1(),
        data == null ? 0 : dataPointers.dptr2(),
        (int) slba,
        (int) (slba >>> 32),
        (blocks - 1) | cdw12Flags,
        0,
        0,
        0);
    submission.advance();
    return slot;
  }

  /**
   * Copies a prepared command into the submission queue, fills in its CID and, if {@code data} is
   * given, its data pointer.
   *
   * @param sqe 64 bytes in the layout of {@link Sqe}
   * @return the slot, or -1 if every slot is taken or the queue is not ready
   */
  public int submit(
      MemorySegment sqe, @Nullable BusRange data, long dataOffset, long dataBytes, long userData) {
    int slot = peekFree();
    if (slot < 0) {
      return -1;
    }
    int psdt = describe(slot, data, dataOffset, dataBytes);
    long bytes = data == null ? 0 : dataBytes;
    int cid = claim(slot, Sqe.opcode(sqe, 0), Sqe.nsid(sqe, 0), -1, bytes, userData);
    long at = submission.tailOffset();
    MemorySegment.copy(sqe, 0, sq, at, Sqe.SIZE);
    Sqe.cid(sq, at, cid);
    if (data != null) {
      Sqe.flags(sq, at, Sqe.flags(sqe, 0) | psdt);
      Sqe.dptr1(sq, at, dataPointers.dptr1());
      Sqe.dptr2(sq, at, dataPointers.dptr2());
    }
    submission.advance();
    return slot;
  }

  private int peekFree() {
    if (hasRoom()) {
      return slots.next();
    }
    if (state() == State.CLOSED) {
      throw new IllegalStateException("queue pair " + qid() + " is closed");
    }
    return -1;
  }

  /** Builds the data pointer before the slot is claimed, so that a refusal leaves no trace. */
  private int describe(int slot, @Nullable BusRange data, long offset, long bytes) {
    if (data == null) {
      return 0;
    }
    dataPointers.build(slot, data, offset, bytes);
    return dataPointers.psdt() << 6;
  }

  private int claim(int slot, int opcode, int nsid, long slba, long bytes, long userData) {
    if (submission.unrung() == 0) {
      batchNanos = System.nanoTime();
    }
    submitted++;
    return slots.claim(slot, opcode, nsid, slba, bytes, userData, batchNanos);
  }

  /**
   * Tells the controller of everything submitted since the last call: one doorbell store, or none.
   */
  public void ring() {
    if (submission.unrung() > 0 && state() == State.READY) {
      countSubmitted();
      submission.ring();
    }
  }

  private void countSubmitted() {
    traffic.submitted(submitted - counted, inFlight());
    counted = submitted;
  }

  /**
   * Commands written and not yet announced by {@link #ring}, for callers that announce several
   * together. Those of a broken queue never will be.
   */
  public int unrung() {
    return submission.unrung();
  }

  // ---- completion

  /**
   * Hands over every completion that is there, then returns the entries to the controller with one
   * doorbell store.
   *
   * @return how many completions were consumed, also those that were late or doubled
   */
  public int poll(CompletionSink sink) {
    int dw3 = completion.peek();
    if (!completion.isNew(dw3) || state() != State.READY) {
      return 0;
    }
    completedNanos = System.nanoTime();
    long before = completed;
    int consumed = 0;
    try {
      do {
        if (!completion.isWhole()) {
          // Half-written, or meant for another queue: leave it; it heals, or the command expires.
          malformed++;
          break;
        }
        int dw0 = completion.take();
        consumed++;
        complete(Cqe.cid(dw3), Cqe.status(dw3), dw0, sink);
        dw3 = completion.peek();
      } while (completion.isNew(dw3) && consumed < spec.cqSize());
    } finally {
      if (consumed > 0 && state() == State.READY) {
        completion.ring();
      }
      countCompleted(completed - before);
    }
    return consumed;
  }

  private void countCompleted(long commands) {
    traffic.completed(commands, latencyNanos, inFlight());
    latencyNanos = 0;
    if ((readBytes | writtenBytes) != 0) {
      traffic.moved(readBytes, writtenBytes);
      readBytes = 0;
      writtenBytes = 0;
    }
  }

  private void complete(int cid, int status, int dw0, CompletionSink sink) {
    int slot = slots.slotOf(cid);
    if (slot >= depth) {
      unknown++;
      return;
    }
    if (!slots.holds(slot, cid)) {
      stale++;
      return;
    }
    slots.dw0(slot, dw0);
    completed++;
    latencyNanos += latencyNanos(slot);
    if (Status.ok(status)) {
      int opcode = slots.opcode(slot);
      readBytes += IoOpcode.toHost(opcode) ? slots.bytes(slot) : 0;
      writtenBytes += IoOpcode.toController(opcode) ? slots.bytes(slot) : 0;
    }
    end(slot, status, sink);
  }

  private void end(int slot, int status, CompletionSink sink) {
    try {
      sink.completed(this, slot, status);
    } finally {
      slots.release(slot);
    }
  }

  // ---- trouble

  /**
   * A command that is in flight and older than the queue's timeout.
   *
   * @param nowNanos {@link System#nanoTime}
   * @return its slot, the oldest first, or -1; looks at every slot, so call it when idle
   */
  public int expired(long nowNanos) {
    return slots.expired(nowNanos, spec.timeoutNanos());
  }

  /**
   * Marks a command's fate as unknown. Its slot and CID stay taken until a completion arrives after
   * all or {@link #failAll} ends it.
   */
  public void quarantine(int slot) {
    slots.quarantine(slot);
  }

  /**
   * Ends every outstanding command with a status made up by the host. Only once the controller can
   * no longer touch the queue: it was deleted, or the controller was reset.
   *
   * @return how many commands were ended
   */
  public int failAll(int status, CompletionSink sink) {
    int ended = 0;
    completedNanos = System.nanoTime();
    for (int slot = 0; slot < depth; slot++) {
      if (!slots.isFree(slot)) {
        slots.dw0(slot, 0);
        ended++;
        end(slot, status, sink);
      }
    }
    countSubmitted();
    return ended;
  }

  /** Why recovery ends what is outstanding, if it is a fatal error of the controller. */
  void fatal(@Nullable String why) {
    fatal = why;
  }

  @Nullable String fatal() {
    return fatal;
  }

  /**
   * Empties both rings for a queue that is about to be created anew at the controller. Outstanding
   * commands must have been ended by {@link #failAll}; generations move on, so that their
   * completions, should any appear, are recognised as stale.
   */
  @Override
  void rebuild() {
    sq.fill((byte) 0);
    fatal = null;
    completion.reset();
    slots.reset();
    submission.reset();
    // Release: breakQueue() by another thread sees a whole queue.
    state.setRelease(State.READY);
  }

  /** Marks a ready queue as broken. Any thread; the owner notices at its next call. */
  @Override
  public void breakQueue() {
    state.compareAndSet(State.READY, State.BROKEN);
  }

  /** The state of the queue. Any thread. */
  @Override
  public State state() {
    // Acquire: the control plane (reset, recovery) is the other side.
    return state.getAcquire();
  }

  // ---- one command, valid inside CompletionSink.completed

  /** The value given at submission. */
  public long userData(int slot) {
    return slots.userData(slot);
  }

  /** Dword 0 of the completion. */
  public int dw0(int slot) {
    return slots.dw0(slot);
  }

  /** The command's opcode. */
  public int opcode(int slot) {
    return slots.opcode(slot);
  }

  /** The command's CID, 0..65535. */
  public int cid(int slot) {
    return slots.cid(slot);
  }

  /** The command's namespace. */
  public int nsid(int slot) {
    return slots.nsid(slot);
  }

  /** The command's first logical block, or -1 if it was not submitted by {@link #submitIo}. */
  public long slba(int slot) {
    return slots.slba(slot);
  }

  /** From the first submission of the command's batch to the poll that saw it complete. */
  public long latencyNanos(int slot) {
    return completedNanos - slots.submittedNanos(slot);
  }

  /** The exception that says what became of the command in {@code slot}. */
  public NvmeStatusException exception(int slot, int status) {
    return new NvmeStatusException(
        status, opcode(slot), spec.qid(), cid(slot), nsid(slot), slba(slot));
  }

  // ---- the queue

  /** Queue identifier; 0 is the admin queue. */
  @Override
  public int qid() {
    return spec.qid();
  }

  /** Submission queue entries. */
  @Override
  public int sqSize() {
    return spec.sqSize();
  }

  /** Completion queue entries. */
  @Override
  public int cqSize() {
    return spec.cqSize();
  }

  /** Commands that can be outstanding at once. */
  public int depth() {
    return depth;
  }

  /** Longest transfer of one command, bytes. */
  public long maxTransferBytes() {
    return spec.maxTransferBytes();
  }

  /** A command older than this has expired. */
  public long timeoutNanos() {
    return spec.timeoutNanos();
  }

  /** Whether another command can be submitted. */
  public boolean hasRoom() {
    return slots.free() > 0 && state() == State.READY;
  }

  /** Commands outstanding, quarantined ones included. */
  public int inFlight() {
    return depth - slots.free();
  }

  /** Commands whose fate is unknown. */
  public int quarantined() {
    return slots.quarantined();
  }

  /** Commands ever submitted. */
  public long submitted() {
    return submitted;
  }

  /** Commands completed by the controller. */
  public long completed() {
    return completed;
  }

  /** What was done through this queue pair, for those who watch. Written by the driving thread. */
  public QueueTraffic traffic() {
    return traffic;
  }

  /** Submission queue doorbell stores. */
  public long sqDoorbells() {
    return submission.doorbellStores();
  }

  /** Completion queue doorbell stores. */
  public long cqDoorbells() {
    return completion.doorbellStores();
  }

  /** Completions ignored because their command was already over: late or doubled. */
  public long stale() {
    return stale;
  }

  /** Completions ignored because no slot has their CID. */
  public long unknown() {
    return unknown;
  }

  /**
   * Polls that met an entry with the right phase and the wrong queue: torn, or the controller's
   * bug.
   */
  public long malformed() {
    return malformed;
  }

  @Override
  long sqBusAddress() {
    return memory.sqBusAddress();
  }

  @Override
  long cqBusAddress() {
    return memory.cqBusAddress();
  }

  QueuePairSpec spec() {
    return spec;
  }

  /** Frees the memory. Only after the controller forgot the queue. Idempotent. */
  @Override
  public void close() {
    state.set(State.CLOSED);
    traffic.close();
    memory.close();
  }
}
