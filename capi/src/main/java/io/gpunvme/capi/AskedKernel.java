package io.gpunvme.capi;

import io.gpunvme.gpu.queue.RunningKernel;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A kernel whose caller may not wait for ever. The first reason to stop it interrupts the thread
 * that waits, which ends the wait; later ones count no more. For one thread.
 */
final class AskedKernel implements RunningKernel {
  /** Why the kernel is to be stopped. */
  enum Reason {
    TIME_IS_UP,
    CANCELLED,
    CLOSED
  }

  /** How often a caller is asked whether to end. */
  private static final long ASK_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  private final RunningKernel kernel;
  private final long limit;
  private final @Nullable BooleanSupplier cancelled;
  private final BooleanSupplier closing;
  private final long start = System.nanoTime();
  private long asked = start;
  private @Nullable Reason reason;

  /**
   * @param limit how many ns it may take
   * @param cancelled asked now and then whether to end; null if nobody wants that
   * @param closing whether what the kernel uses is about to be closed
   */
  AskedKernel(
      RunningKernel kernel,
      long limit,
      @Nullable BooleanSupplier cancelled,
      BooleanSupplier closing) {
    this.kernel = kernel;
    this.limit = limit;
    this.cancelled = cancelled;
    this.closing = closing;
  }

  @Override
  public boolean isOver() {
    if (reason == null) {
      reason = look();
      if (reason != null) {
        Thread.currentThread().interrupt();
      }
    }
    return kernel.isOver();
  }

  private @Nullable Reason look() {
    if (closing.getAsBoolean()) {
      return Reason.CLOSED;
    }
    long now = System.nanoTime();
    if (now - start >= limit) {
      return Reason.TIME_IS_UP;
    }
    BooleanSupplier ask = cancelled;
    if (ask == null || now - asked < ASK_NANOS) {
      return null;
    }
    asked = now;
    return ask.getAsBoolean() ? Reason.CANCELLED : null;
  }

  /** The first reason so far; null: none. */
  @Nullable Reason reason() {
    return reason;
  }

  /** The interrupt was for the wait alone. */
  void forgetInterrupt() {
    if (reason != null) {
      Thread.interrupted();
    }
  }
}
