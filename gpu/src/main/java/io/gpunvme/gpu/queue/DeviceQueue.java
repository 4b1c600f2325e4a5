package io.gpunvme.gpu.queue;

import static io.gpunvme.gpu.queue.DeviceLayout.getInt;
import static io.gpunvme.gpu.queue.DeviceLayout.setInt;
import static io.gpunvme.gpu.queue.DeviceLayout.setLong;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceLayout.Errors;
import io.gpunvme.gpu.queue.DeviceLayout.Queue;
import io.gpunvme.gpu.queue.DeviceLayout.Slot;
import io.gpunvme.nvme.driver.ExternalQueuePair;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * One queue pair in an accelerator's memory: {@code struct Queue} with its arrays. Everything here
 * copies; nothing may be called while a kernel drives the queue. Not safe for several threads.
 */
public final class DeviceQueue {
  private static final long ALIGNMENT = 128;

  /** Kernels count a wait in units of 1024 ns, with 31 bits. */
  private static final long MOST_TIMEOUT_NANOS = TimeUnit.MINUTES.toNanos(30);

  private final ExternalQueuePair pair;
  private final QueueSizes sizes;
  private final DeviceBuffer state;
  private final long struct;
  private final long slots;
  private final long infos;
  private final long free;
  private final long marks;
  private final long errors;

  /**
   * @param state where structures and arrays of all queues lie
   * @param struct offset of this queue's structure in it
   * @param arrays offset of {@link #arrayBytes} bytes for this queue's arrays in it
   */
  DeviceQueue(
      ExternalQueuePair pair, QueueSizes sizes, DeviceBuffer state, long struct, long arrays) {
    this.pair = pair;
    this.sizes = sizes;
    this.state = state;
    this.struct = struct;
    slots = arrays;
    infos = slots + aligned(sizes.slotBytes());
    free = infos + aligned(sizes.infoBytes());
    marks = free + aligned(sizes.freeBytes());
    errors = marks + aligned(sizes.markBytes());
  }

  /** Bytes of the arrays of one queue. */
  static long arrayBytes(QueueSizes sizes) {
    return aligned(sizes.slotBytes())
        + aligned(sizes.infoBytes())
        + aligned(sizes.freeBytes())
        + aligned(sizes.markBytes())
        + aligned(QueueSizes.errorBytes());
  }

  private static long aligned(long bytes) {
    return Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT;
  }

  /** The queue pair at the controller. */
  public ExternalQueuePair pair() {
    return pair;
  }

  /** Commands in flight at most. */
  public int depth() {
    return sizes.depth();
  }

  /** Where the accelerator finds {@code struct Queue}. */
  public long deviceAddress() {
    return state.deviceAddress() + struct;
  }

  /**
   * Writes everything, with no command ever submitted.
   *
   * @param flags of {@link Queue}
   * @param sq address of the submission queue as the accelerator has it; likewise {@code cq}
   * @param stop address of the word that ends waits
   * @param recovery address of {@code struct Recovery}; 0: none
   * @param timeoutNanos of a command; kernels take more than half an hour for that
   */
  void create(
      int flags,
      long sq,
      long cq,
      Doorbells doorbells,
      long stop,
      long recovery,
      long timeoutNanos) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment q = arena.allocate(Queue.SERVICE, Long.BYTES);
      setInt(q, Queue.QID, pair.qid());
      setInt(q, Queue.DEPTH, sizes.depth());
      setInt(q, Queue.SQ_BITS, sizes.sqBits());
      setInt(q, Queue.CQ_BITS, sizes.cqBits());
      setInt(q, Queue.SLOT_BITS, sizes.slotBits());
      setInt(q, Queue.FLAGS, flags);
      setLong(q, Queue.TIMEOUT_NS, Math.min(timeoutNanos, MOST_TIMEOUT_NANOS));
      setLong(q, Queue.SQ, sq);
      setLong(q, Queue.CQ, cq);
      setLong(q, Queue.SQ_DOORBELL, doorbells.deviceAddress(pair.sqDoorbellOffset()));
      setLong(q, Queue.CQ_DOORBELL, doorbells.deviceAddress(pair.cqDoorbellOffset()));
      setLong(q, Queue.SLOTS, state.deviceAddress() + slots);
      setLong(q, Queue.INFOS, state.deviceAddress() + infos);
      setLong(q, Queue.FREE_SLOTS, state.deviceAddress() + free);
      setLong(q, Queue.MARKS, state.deviceAddress() + marks);
      setLong(q, Queue.ERRORS, state.deviceAddress() + errors);
      setLong(q, Queue.STOP, stop);
      setLong(q, Queue.RECOVERY, recovery);
      state.copyFromHost(q, struct);
      MemorySegment log = arena.allocate(Errors.RECORDS, Long.BYTES);
      setInt(log, Errors.CAPACITY, QueueSizes.ERROR_CAPACITY);
      state.copyFromHost(log, errors);
      int[] cids = new int[sizes.depth()];
      for (int slot = 0; slot < cids.length; slot++) {
        cids[slot] = slot;
      }
      free(arena, cids);
    }
  }

  /**
   * Back to no command submitted, after the controller was given empty rings. Generations go on, so
   * that completions from before are recognised. Counters and errors stay.
   */
  void reset() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment words = arena.allocate(sizes.slotBytes(), Integer.BYTES);
      state.copyToHost(slots, words);
      int[] cids = new int[sizes.depth()];
      for (int slot = 0; slot < cids.length; slot++) {
        cids[slot] = getInt(words, (long) slot * Integer.BYTES) & 0xFFFF;
      }
      free(arena, cids);
    }
  }

  /** Makes all slots free; {@code cids} are those used last. */
  private void free(Arena arena, int[] cids) {
    MemorySegment words = arena.allocate(sizes.slotBytes(), Integer.BYTES);
    MemorySegment freeSlots = arena.allocate(sizes.freeBytes(), Integer.BYTES);
    for (int slot = 0; slot < cids.length; slot++) {
      setInt(words, (long) slot * Integer.BYTES, Slot.FREE | cids[slot]);
      if (!sizes.shared()) {
        setInt(freeSlots, (long) slot * Integer.BYTES, sizes.nextCid(cids[slot]));
      }
    }
    if (sizes.shared()) {
      freeSlots.fill((byte) 0xFF);
    }
    state.copyFromHost(words, slots);
    state.copyFromHost(freeSlots, free);
    state.copyFromHost(arena.allocate(sizes.markBytes()), marks);
    MemorySegment moving = arena.allocate(Queue.SUBMITTED - Queue.SQ_TAIL, Long.BYTES);
    setInt(moving, Queue.FREE_TAIL - Queue.SQ_TAIL, sizes.shared() ? 0 : sizes.depth());
    state.copyFromHost(moving, struct + Queue.SQ_TAIL);
  }

  // ---- what the kernels left

  /** Commands whose fate is unknown; their slots stay taken until the queue is recovered. */
  public int quarantined() {
    try (Arena arena = Arena.ofConfined()) {
      return getInt(read(arena), Queue.QUARANTINED);
    }
  }

  /**
   * Commands that have a slot: quarantined ones, and those that a kernel submitted and did not wait
   * for.
   */
  int outstanding() {
    try (Arena arena = Arena.ofConfined()) {
      if (!sizes.shared()) {
        return taken(read(arena), sizes.depth());
      }
      MemorySegment words = arena.allocate(sizes.depth() / Byte.SIZE, Integer.BYTES);
      state.copyToHost(free, words);
      int open = 0;
      for (long at = 0; at < words.byteSize(); at += Integer.BYTES) {
        open += Integer.bitCount(getInt(words, at));
      }
      return sizes.depth() - open;
    }
  }

  /** Whether an exclusive queue has no command outstanding, by its {@code struct Queue}. */
  static boolean isQuiet(MemorySegment queue, int depth) {
    return taken(queue, depth) == 0 && getInt(queue, Queue.QUARANTINED) == 0;
  }

  private static int taken(MemorySegment queue, int depth) {
    return depth - (getInt(queue, Queue.FREE_TAIL) - getInt(queue, Queue.FREE_HEAD));
  }

  /** The controller has the queue pair anew; a kernel sets the words back. */
  void tellRecovered(int recovery) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment word = arena.allocate(Integer.BYTES, Integer.BYTES);
      setInt(word, 0, recovery);
      state.copyFromHost(word, struct + Queue.RECOVERED);
    }
  }

  /** What was done so far. */
  public QueueCounters counters() {
    try (Arena arena = Arena.ofConfined()) {
      return QueueCounters.read(read(arena));
    }
  }

  private MemorySegment read(Arena arena) {
    MemorySegment q = arena.allocate(Queue.SIZE, Long.BYTES);
    state.copyToHost(struct, q);
    return q;
  }

  /** The errors since the last call; the log is empty then. */
  public DeviceErrors takeErrors() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment log = arena.allocate(QueueSizes.errorBytes(), Long.BYTES);
      MemorySegment count = log.asSlice(Errors.COUNT, Integer.BYTES);
      state.copyToHost(errors + Errors.COUNT, count);
      long total = Integer.toUnsignedLong(getInt(count, 0));
      if (total == 0) {
        return new DeviceErrors(List.of(), 0);
      }
      int kept = (int) Math.min(total, QueueSizes.ERROR_CAPACITY);
      long bytes = kept * Errors.RECORD_SIZE;
      state.copyToHost(errors + Errors.RECORDS, log.asSlice(Errors.RECORDS, bytes));
      List<DeviceError> records = new ArrayList<>();
      for (int i = 0; i < kept; i++) {
        records.add(DeviceError.read(log, Errors.RECORDS + i * Errors.RECORD_SIZE));
      }
      setInt(count, 0, 0);
      state.copyFromHost(count, errors + Errors.COUNT);
      return new DeviceErrors(records, total);
    }
  }

  @Override
  public String toString() {
    return "device queue of depth %d on %s".formatted(sizes.depth(), pair);
  }
}
