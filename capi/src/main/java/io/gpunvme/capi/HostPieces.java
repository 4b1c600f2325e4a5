package io.gpunvme.capi;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Pinned memory in pieces of one length, made when it is needed and kept: taking it from the driver
 * is slow, and waits for kernels. Safe for all threads.
 */
final class HostPieces {
  private final Accelerator accelerator;
  private final long bytes;
  private final int most;

  /** Guarded by this. */
  private final Deque<DeviceBuffer> free = new ArrayDeque<>();

  private int made;

  /**
   * None yet.
   *
   * @param bytes of a piece
   * @param most pieces
   */
  HostPieces(Accelerator accelerator, long bytes, int most) {
    this.accelerator = accelerator;
    this.bytes = bytes;
    this.most = most;
  }

  long bytes() {
    return bytes;
  }

  /**
   * Waits for a piece.
   *
   * @param givenUp asked again after each {@link #wake}, and every 10 ms
   * @return null if given up
   */
  @Nullable DeviceBuffer take(BooleanSupplier givenUp) throws InterruptedException {
    synchronized (this) {
      while (free.isEmpty() && made == most) {
        if (givenUp.getAsBoolean()) {
          return null;
        }
        wait(10);
      }
    }
    DeviceBuffer piece = tryTake();
    return piece == null ? take(givenUp) : piece;
  }

  /** A piece, or null if all are in use. */
  @Nullable DeviceBuffer tryTake() {
    synchronized (this) {
      DeviceBuffer there = free.poll();
      if (there != null || made == most) {
        return there;
      }
      made++;
    }
    try {
      return accelerator.allocatePinned(bytes);
    } catch (RuntimeException | Error e) {
      synchronized (this) {
        made--;
        notifyAll();
      }
      throw e;
    }
  }

  synchronized void give(DeviceBuffer piece) {
    free.push(piece);
    notifyAll();
  }

  /** Lets those who wait look whether they have given up. */
  synchronized void wake() {
    notifyAll();
  }
}
