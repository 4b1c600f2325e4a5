package io.gpunvme.tools.bench;

import static io.gpunvme.gpu.queue.DeviceLayout.getInt;
import static io.gpunvme.gpu.queue.DeviceLayout.getLong;
import static io.gpunvme.gpu.queue.DeviceLayout.setInt;
import static io.gpunvme.gpu.queue.DeviceLayout.setLong;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceLayout.Errors;
import io.gpunvme.gpu.queue.DeviceLayout.Queue;
import io.gpunvme.gpu.queue.DeviceLayout.Slot;
import io.gpunvme.gpu.queue.QueueCounters;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Queue pairs that no controller knows: a {@link Responder} plays one. Not safe for several
 * threads; while a kernel runs only {@link #stop} may be called.
 */
final class BenchQueues implements AutoCloseable {
  /** The namespace that the commands name. */
  static final int NSID = 1;

  /** {@code queue_flags::kRingsInGpuMemory}. */
  private static final int RINGS_IN_GPU_MEMORY = 4;

  private static final int ERROR_CAPACITY = 255;
  private static final int LINE = 128;

  private final QueueShape shape;
  private final long timeoutNanos;
  private final DeviceBuffer rings;
  private final DeviceBuffer doorbells;
  private final DeviceBuffer state;
  private final List<DeviceBuffer> buffers = new ArrayList<>();
  private final Arena arena = Arena.ofShared();

  /** What {@link #reset} puts into {@code state}. */
  private final MemorySegment image;

  private final MemorySegment zeroes;
  private final MemorySegment one;
  private final long stopOffset;
  private final long errorsOffset;
  private boolean closed;

  /**
   * Allocates the queues; nothing was submitted on them.
   *
   * @param timeoutNanos what a command may take
   */
  BenchQueues(Accelerator accelerator, QueueShape shape, long timeoutNanos) {
    this.shape = shape;
    this.timeoutNanos = timeoutNanos;
    try {
      rings = keep(allocate(accelerator, shape.ringBytes()));
      doorbells = keep(allocate(accelerator, shape.doorbellBytes()));
      stopOffset = shape.queues() * Queue.SIZE;
      errorsOffset = stopOffset + LINE;
      long bytes = arraysOffset() + shape.queues() * arrayBytes();
      state = keep(accelerator.allocate(bytes));
      image = arena.allocate(bytes, LINE);
      zeroes = arena.allocate(Math.max(shape.ringBytes(), shape.doorbellBytes()), LINE);
      one = arena.allocate(Integer.BYTES, Integer.BYTES);
      setInt(one, 0, 1);
      fillImage();
      reset();
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::close);
      throw e;
    }
  }

  private DeviceBuffer allocate(Accelerator accelerator, long bytes) {
    return shape.vram() ? accelerator.allocate(bytes) : accelerator.allocatePinned(bytes);
  }

  private DeviceBuffer keep(DeviceBuffer buffer) {
    buffers.addFirst(buffer);
    return buffer;
  }

  // ---- the arrays of one queue: slots, infos, free slots, marks

  private long arraysOffset() {
    return errorsOffset + aligned(Errors.RECORDS + ERROR_CAPACITY * Errors.RECORD_SIZE);
  }

  private long arrayBytes() {
    return slotBytes() + infoBytes() + freeBytes() + aligned((long) shape.sqSize() * Integer.BYTES);
  }

  private long slotBytes() {
    return aligned((long) shape.depth() * Integer.BYTES);
  }

  private long infoBytes() {
    return aligned(shape.depth() * Slot.INFO_SIZE);
  }

  private long freeBytes() {
    return aligned((long) Integer.BYTES << shape.slotBits());
  }

  private static long aligned(long bytes) {
    return Math.ceilDiv(bytes, LINE) * LINE;
  }

  private void fillImage() {
    setInt(image, errorsOffset + Errors.CAPACITY, ERROR_CAPACITY);
    for (int i = 0; i < shape.queues(); i++) {
      long slots = arraysOffset() + i * arrayBytes();
      long free = slots + slotBytes() + infoBytes();
      describe(image.asSlice(i * Queue.SIZE, Queue.SIZE), i, slots);
      for (int slot = 0; slot < shape.depth(); slot++) {
        setInt(image, slots + (long) slot * Integer.BYTES, Slot.FREE | slot);
        if (!shape.shared()) {
          setInt(image, free + (long) slot * Integer.BYTES, slot);
        }
      }
      if (shape.shared()) {
        image.asSlice(free, shape.depth() / Byte.SIZE).fill((byte) 0xFF);
      }
    }
  }

  private void describe(MemorySegment q, int index, long slots) {
    setInt(q, Queue.QID, qid(index));
    setInt(q, Queue.DEPTH, shape.depth());
    setInt(q, Queue.SQ_BITS, shape.sqBits());
    setInt(q, Queue.CQ_BITS, shape.cqBits());
    setInt(q, Queue.SLOT_BITS, shape.slotBits());
    int where = shape.vram() ? RINGS_IN_GPU_MEMORY : 0;
    int who = shape.shared() ? Queue.SHARED : 0;
    setInt(q, Queue.FLAGS, Queue.DOORBELLS_IN_MEMORY | where | who);
    setLong(q, Queue.TIMEOUT_NS, timeoutNanos);
    setLong(q, Queue.SQ, rings.deviceAddress() + shape.sqOffset(index));
    setLong(q, Queue.CQ, rings.deviceAddress() + shape.cqOffset(index));
    setLong(q, Queue.SQ_DOORBELL, doorbells.deviceAddress() + shape.doorbellOffset(index));
    setLong(q, Queue.CQ_DOORBELL, doorbells.deviceAddress() + shape.cqDoorbellOffset(index));
    long base = state.deviceAddress();
    setLong(q, Queue.SLOTS, base + slots);
    setLong(q, Queue.INFOS, base + slots + slotBytes());
    setLong(q, Queue.FREE_SLOTS, base + slots + slotBytes() + infoBytes());
    setLong(q, Queue.MARKS, base + slots + slotBytes() + infoBytes() + freeBytes());
    setLong(q, Queue.ERRORS, base + errorsOffset);
    setLong(q, Queue.STOP, base + stopOffset);
    setInt(q, Queue.FREE_TAIL, shape.shared() ? 0 : shape.depth());
  }

  /** Queue identifiers count from 1. */
  static int qid(int index) {
    return index + 1;
  }

  QueueShape shape() {
    return shape;
  }

  /** Where the accelerator finds the first {@code struct Queue}. */
  long deviceAddress() {
    return state.deviceAddress();
  }

  /** The rings, if they are in host memory. */
  MemorySegment rings() {
    return rings.segment();
  }

  /** The doorbells, if they are in host memory. */
  MemorySegment doorbells() {
    return doorbells.segment();
  }

  /** Back to nothing ever submitted. Neither kernel nor responder is at work. */
  void reset() {
    state.copyFromHost(image, 0);
    rings.copyFromHost(zeroes.asSlice(0, shape.ringBytes()), 0);
    doorbells.copyFromHost(zeroes.asSlice(0, shape.doorbellBytes()), 0);
  }

  /**
   * Tells a kernel on these queues to end every wait. The word is in the accelerator's memory and
   * set by a copy: warps that poll host memory slow every fence of the GPU down.
   */
  void stop() {
    state.copyFromHost(one, stopOffset);
  }

  /** What kernels did on all queues since {@link #reset}. */
  QueueCounters counters() {
    QueueCounters sum = QueueCounters.NONE;
    try (Arena here = Arena.ofConfined()) {
      MemorySegment all = here.allocate(shape.queues() * Queue.SIZE, Long.BYTES);
      state.copyToHost(0, all);
      for (int i = 0; i < shape.queues(); i++) {
        sum = sum.plus(read(all.asSlice(i * Queue.SIZE, Queue.SIZE)));
      }
    }
    return sum;
  }

  private static QueueCounters read(MemorySegment queue) {
    return new QueueCounters(
        getLong(queue, Queue.SUBMITTED),
        getLong(queue, Queue.COMPLETED),
        getLong(queue, Queue.SQ_DOORBELLS),
        getLong(queue, Queue.CQ_DOORBELLS),
        getLong(queue, Queue.FAILURES),
        getLong(queue, Queue.TIMEOUTS),
        getLong(queue, Queue.LATE),
        getLong(queue, Queue.STALE),
        getLong(queue, Queue.UNKNOWN),
        getLong(queue, Queue.MALFORMED),
        getLong(queue, Queue.RECOVERED_SLOTS));
  }

  /** How many errors the kernels have logged since {@link #reset}. */
  int errors() {
    try (Arena here = Arena.ofConfined()) {
      MemorySegment count = here.allocate(Integer.BYTES, Integer.BYTES);
      state.copyToHost(errorsOffset + Errors.COUNT, count);
      return getInt(count, 0);
    }
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      buffers.forEach(DeviceBuffer::close);
      arena.close();
    }
  }
}
