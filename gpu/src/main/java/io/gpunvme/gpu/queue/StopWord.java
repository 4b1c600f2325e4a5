package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A word that kernels look at now and then while they wait, and that tells them to end their waits.
 * It counts the kernels that are waited for: those that share a word are stopped together, and it
 * is taken back when the last of them is over. Safe for all threads.
 */
final class StopWord implements AutoCloseable {
  // In the accelerator's memory: warps that poll host memory slow each other's fences down.
  private final DeviceBuffer word;

  private static final int STOP = 1;
  private static final int RECOVER = 2;

  /** What the word may say: bits of {@code namespace told}. */
  private int said;

  private int kernels;
  private boolean closed;

  StopWord(Accelerator accelerator) {
    word = accelerator.allocate(Integer.BYTES);
  }

  long deviceAddress() {
    return word.deviceAddress();
  }

  /**
   * Tells every kernel that looks at this word to end its waits, or cancels that. Nothing happens
   * once it is closed: no kernel looks at it any more.
   */
  synchronized void stop(boolean value) {
    if (closed) {
      return;
    }
    say(STOP, value);
  }

  /** Tells kernels that look at this word to look after a recovery, or cancels that. */
  synchronized void recover(boolean value) {
    if (!closed && value != ((said & RECOVER) != 0)) {
      say(RECOVER, value);
    }
  }

  private void say(int bit, boolean value) {
    int next = value ? said | bit : said & ~bit;
    // Set before the word and cleared after it: who finds it clear need not write.
    said |= next;
    if ((said & bit) != 0) {
      write(next);
      said = next;
    }
  }

  /** A kernel is waited for from now on. */
  synchronized void begin() {
    kernels++;
  }

  /** It is over; not called for one that hangs, whose word says stop for good. */
  synchronized void end() {
    kernels--;
    if (kernels == 0) {
      stop(false);
    }
  }

  private void write(int value) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment copy = arena.allocate(Integer.BYTES, Integer.BYTES);
      DeviceLayout.setInt(copy, 0, value);
      word.copyFromHost(copy, 0);
    }
  }

  @Override
  public synchronized void close() {
    closed = true;
    word.close();
  }
}
