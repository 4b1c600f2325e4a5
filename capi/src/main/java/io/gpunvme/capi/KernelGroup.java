package io.gpunvme.capi;

import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.queue.RunningKernel;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Kernels that are given the same {@code struct Storage}, and so are stopped together: what C has a
 * {@code gpunvme_kernel_storage} of. Safe for all threads. Closing it stops those that are waited
 * for. If that fails, it is closed to all other calls, and closing can be tried again.
 */
abstract class KernelGroup implements Handles.ClosedAgain {
  private final Memory memory;
  private final String name;

  /** Shared by whoever uses this, waits for kernels included; closing takes all of it. */
  private final ReadWriteLock use = new ReentrantReadWriteLock();

  private volatile boolean closing;

  /**
   * @param name in messages, of kernels: a plural
   */
  KernelGroup(Memory memory, String name) {
    this.memory = memory;
    this.name = name;
  }

  final Memory memory() {
    return memory;
  }

  final String name() {
    return name;
  }

  /** The storage for kernels that this is, or is a handle of. */
  abstract Kernels storage();

  /** Where the GPU finds {@code struct Storage}; called while this is open, as those below. */
  abstract long address();

  /** As {@link io.gpunvme.gpu.queue.KernelStorage#await}. */
  abstract boolean awaitKernel(RunningKernel kernel, Duration limit);

  /** As {@link io.gpunvme.gpu.queue.KernelStorage#troubled}. */
  abstract boolean troubled();

  abstract void tellToStop(boolean value);

  /** Nobody uses this any more. Called again where it failed. */
  abstract void giveBack();

  // ---- as long as it is open

  /** What is done while this is open. */
  interface Work<T> {
    T run();
  }

  <T> T whileOpen(Work<T> work) {
    use.readLock().lock();
    try {
      if (closing()) {
        throw new ClosedHandleException("this storage for kernels or what it is on was closed");
      }
      return work.run();
    } finally {
      use.readLock().unlock();
    }
  }

  /** Closes something of it, unless this is closed, which has done that. */
  final void beforeItCloses(Runnable close) {
    use.readLock().lock();
    try {
      if (!closing()) {
        close.run();
      }
    } finally {
      use.readLock().unlock();
    }
  }

  boolean closing() {
    return closing;
  }

  @Override
  public final void close() {
    closing = true;
    use.writeLock().lock();
    try {
      giveBack();
    } finally {
      use.writeLock().unlock();
    }
  }

  /** The device address of {@code struct Storage}. */
  final long deviceHandle() {
    return whileOpen(this::address);
  }

  /** Tells the kernels to end their waits, or cancels that. */
  final void stop(boolean value) {
    whileOpen(
        () -> {
          tellToStop(value);
          return value;
        });
  }

  // ---- waiting

  /**
   * Waits until all work in a stream is over.
   *
   * @param nanos how long it may take, unsigned
   * @param cancelled asked now and then whether to end; null if nobody wants that
   * @throws NvmeTimeoutException if the time is up
   * @throws StorageException if the kernel was told to stop for another reason, or an SSD is in
   *     trouble
   */
  final void await(long stream, long nanos, @Nullable BooleanSupplier cancelled) {
    whileOpen(
        () -> {
          try (CudaStream of = memory.stream(stream, name)) {
            await(of::isIdle, nanos, cancelled);
          }
          return stream;
        });
  }

  /** The same for all work before an event. */
  final void awaitEvent(long event, long nanos, @Nullable BooleanSupplier cancelled) {
    whileOpen(
        () -> {
          try (CudaEvent of = memory.event(event, name)) {
            await(of::isDone, nanos, cancelled);
          }
          return event;
        });
  }

  /** The same for anything that runs. */
  final void await(RunningKernel work, long nanos, @Nullable BooleanSupplier cancelled) {
    long limit = nanos < 0 ? Long.MAX_VALUE : nanos;
    AskedKernel kernel = new AskedKernel(work, limit, cancelled, this::closing);
    boolean over;
    try {
      // The kernel itself looks at the time, so that one place knows the first reason.
      over = awaitKernel(kernel, Duration.ofNanos(Long.MAX_VALUE));
    } finally {
      kernel.forgetInterrupt();
    }
    if (over) {
      return;
    }
    AskedKernel.Reason reason = kernel.reason();
    boolean interrupted = Thread.currentThread().isInterrupted();
    // An SSD comes first: other reasons may have come up while the kernel ended.
    if (troubled() || (reason == null && !interrupted)) {
      throw failure(
          Kind.IO,
          "an SSD is in trouble, so they were told to stop; they have ended: recover the storage"
              + " before the next one");
    }
    if (reason == AskedKernel.Reason.TIME_IS_UP) {
      throw new NvmeTimeoutException(
          "%s were told to stop after %d ms, and have ended"
              .formatted(name, TimeUnit.NANOSECONDS.toMillis(limit)));
    }
    boolean closed = reason == AskedKernel.Reason.CLOSED;
    throw failure(
        Kind.CANCELLED, closed ? "was stopped, as its storage was closed" : "was stopped");
  }

  private StorageException failure(Kind kind, String what) {
    return new StorageException(kind, name, -1, -1, what, null);
  }
}
