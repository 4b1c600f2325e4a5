package io.gpunvme.gpu.queue;

import io.gpunvme.base.CloseAll;
import io.gpunvme.nvme.NvmeTimeoutException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Waits for a kernel that drives queues. It tells the kernel to stop when its SSD is in trouble,
 * and does not wait for ever for a kernel that does not stop. For one thread.
 */
public final class KernelWait {
  private static final long NAP_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

  /** Short reads are over before a nap would be, which takes longer than it says. */
  private static final long SPIN_NANOS = TimeUnit.MICROSECONDS.toNanos(150);

  /** How often the controllers are asked how they are; a register read takes microseconds. */
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

  /** Kernels look at the stop word every few hundred rounds of microseconds each. */
  private static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(10);

  private final List<DeviceQueues> queues;
  private final List<StopWord> stops;
  private final long graceNanos;
  private boolean told;
  private boolean hung;

  /** For a kernel that drives these queues. */
  public KernelWait(List<DeviceQueues> queues) {
    this(queues, queues.stream().map(DeviceQueues::stopWord).toList());
  }

  /** For a kernel that looks at these stop words. */
  KernelWait(List<DeviceQueues> queues, List<StopWord> stops) {
    this(queues, stops, GRACE_NANOS);
  }

  /**
   * @param graceNanos how long a kernel may go on after it was told to stop
   */
  KernelWait(List<DeviceQueues> queues, List<StopWord> stops, long graceNanos) {
    this.queues = List.copyOf(queues);
    this.stops = List.copyOf(stops);
    this.graceNanos = graceNanos;
  }

  /**
   * Returns when the kernel is over, by itself or because it was told to stop.
   *
   * @param stop polled; once it returns true, the kernel is told to stop
   * @throws NvmeTimeoutException if the kernel does not stop; see {@link #hung}
   */
  public void await(RunningKernel kernel, BooleanSupplier stop) {
    Looks looks = new Looks(stop);
    stops.forEach(StopWord::begin);
    try {
      await(kernel, looks);
    } catch (RuntimeException | Error e) {
      // It failed, which is an end, too: the next kernel must not find a word that says stop.
      if (!hung) {
        CloseAll.after(e, stops, StopWord::end);
      }
      throw e;
    }
    stops.forEach(StopWord::end);
    looks.throwIfFailed();
  }

  private void await(RunningKernel kernel, Looks looks) {
    long stopped = 0;
    told = false;
    long start = System.nanoTime();
    while (!kernel.isOver()) {
      long now = System.nanoTime();
      if (now - start < SPIN_NANOS) {
        Thread.onSpinWait();
        continue;
      }
      LockSupport.parkNanos(NAP_NANOS);
      now = System.nanoTime();
      boolean wanted = looks.stopWanted(now);
      if (told) {
        requireEnd(now - stopped);
      } else if (wanted) {
        told = true;
        stopped = now;
        stops.forEach(s -> s.stop(true));
      }
    }
  }

  /** Whether to stop the kernel. Who fails to say so has it stopped, and is told afterwards. */
  private final class Looks {
    private final BooleanSupplier stop;
    private long looked = System.nanoTime();
    private @Nullable Throwable failure;

    Looks(BooleanSupplier stop) {
      this.stop = stop;
    }

    boolean stopWanted(long now) {
      if (failure != null) {
        return true;
      }
      try {
        boolean wanted = stop.getAsBoolean();
        if (now - looked >= LOOK_NANOS) {
          looked = now;
          wanted |= queues.stream().anyMatch(DeviceQueues::hopeless);
        }
        return wanted;
      } catch (Throwable e) {
        // Nobody may leave before the kernel is over: it uses the caller's memory.
        failure = e;
        return true;
      }
    }

    void throwIfFailed() {
      switch (failure) {
        case null -> {}
        case RuntimeException e -> throw e;
        case Error e -> throw e;
        default -> throw new IllegalStateException(failure);
      }
    }
  }

  private void requireEnd(long nanos) {
    if (nanos > graceNanos) {
      hung = true;
      throw new NvmeTimeoutException(
          "the kernel did not end within %d ms after it was told to stop; the GPU may need a new process"
              .formatted(TimeUnit.NANOSECONDS.toMillis(graceNanos)));
    }
  }

  /** Whether the last kernel was told to stop, for whatever reason. */
  boolean told() {
    return told;
  }

  /**
   * Whether a kernel did not stop. Memory that it may use must never be freed, because freeing
   * waits for the kernel. {@link DeviceQueues#abandon} keeps the kernel away from the SSD.
   */
  public boolean hung() {
    return hung;
  }
}
