package io.gpunvme.storage;

import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.DeviceBuffer;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * A word in pinned memory that streams wait for and the CPU stores. It counts turns: a stream that
 * waits for a turn goes on when that turn or a later one is opened.
 *
 * <p>Streams that share one of the GPU's hardware queues wait together, so the work before a gate
 * opens must not need such a stream. Safe for all threads; the memory outlives every wait.
 */
public final class StreamGate {
  /** Bytes of the word. */
  public static final long BYTES = Integer.BYTES;

  private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle().withInvokeExactBehavior();

  private final MemorySegment word;
  private final long address;
  private int opened;

  /**
   * A gate whose turn 0 is open.
   *
   * @param memory pinned, zero at {@code offset}; stays the caller's
   * @param offset of the word, a multiple of 4
   */
  public StreamGate(DeviceBuffer memory, long offset) {
    word = memory.segment().asSlice(offset, BYTES);
    address = memory.deviceAddress() + offset;
  }

  /** Makes later work in the stream wait until a turn is open. */
  public void await(CudaStream stream, int turn) {
    stream.awaitValue(address, turn);
  }

  /** Opens a turn and all turns before it; open turns stay open. */
  public synchronized void open(int turn) {
    if (turn - opened > 0) {
      opened = turn;
      // Release: the data before the word; the stream, which acquires it, is the other side.
      WORD.setRelease(word, 0L, turn);
    }
  }
}
