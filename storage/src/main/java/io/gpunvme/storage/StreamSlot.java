package io.gpunvme.storage;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import java.lang.foreign.MemorySegment;

/**
 * Pinned memory, the gate that tells a stream that it is filled, and the event after a stream's use
 * of it. Used by one piece of a transfer at a time.
 */
final class StreamSlot implements AutoCloseable {
  private final DeviceBuffer memory;
  private final DeviceBuffer word;
  private final StreamGate gate;
  private final CudaEvent used;
  private int turn;

  /**
   * @param bytes of its memory
   */
  StreamSlot(GpuAccelerator accelerator, long bytes) {
    memory = accelerator.allocatePinned(bytes);
    word = CloseAll.orClose(() -> accelerator.allocatePinned(StreamGate.BYTES), memory::close);
    gate = new StreamGate(word, 0);
    used = CloseAll.orClose(accelerator.context()::event, () -> CloseAll.all(word, memory));
  }

  DeviceBuffer memory() {
    return memory;
  }

  /** The first {@code n} bytes. */
  MemorySegment bytes(long n) {
    return memory.segment().asSlice(0, n);
  }

  /** Another use begins: the gate is shut. */
  void begin() {
    turn++;
  }

  /** Lets the stream wait until {@link #open} is called for this turn. */
  void await(CudaStream stream) {
    gate.await(stream, turn);
  }

  /** Opens the gate of this turn; it stays open for streams that come to it later. */
  void open() {
    gate.open(turn);
  }

  /** What is in the stream now is all of this turn's use. */
  void record(CudaStream stream) {
    stream.record(used);
  }

  /** Whether the stream of the last use is past it. */
  boolean isUsed() {
    return used.isDone();
  }

  /** Waits until {@link #isUsed}. */
  void awaitUse() {
    used.synchronize();
  }

  @Override
  public void close() {
    CloseAll.all(used, word, memory);
  }
}
