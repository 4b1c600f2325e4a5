package io.gpunvme.nvme.driver;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.IdentifyController;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A controller from bring-up to shutdown, resets in between. One lock orders everything that
 * changes what the controller is or knows; the admin queue's own lock is taken inside it, never
 * around it.
 */
final class Lifecycle implements AdminQueue.Rescue {
  private static final long POLL_NANOS = 100_000;
  private static final long LONGEST_RTD3E_NANOS = TimeUnit.MINUTES.toNanos(1);

  private final PciFunction function;
  private final ControllerOptions options;
  private final ReentrantLock lock = new ReentrantLock();
  private final CopyOnWriteArrayList<BringUpStep> steps = new CopyOnWriteArrayList<>();
  private final AtomicLong resets = new AtomicLong();
  private final ControllerRegisters registers;
  private final ControllerParts parts;
  private final AdminQueue admin;
  private final IoQueues queues;
  private volatile @Nullable RuntimeException outOfService;

  /** Whether the controller answers commands. */
  private boolean up;

  /** Whether the last reset failed, or the device was found gone. */
  private boolean failed;

  private boolean closed;

  /** Whether it was not certain that the DMA had stopped, when it was to be stopped last. */
  private boolean doubted;

  /** Brings the controller up; on failure everything is given back but the function. */
  Lifecycle(PciFunction function, ControllerOptions options) {
    this.function = function;
    this.options = options;
    BringUp bringUp = new BringUp(function, options, null, steps::add);
    this.registers = bringUp.registers();
    try {
      bringUp.run();
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> giveBack(bringUp.adminPair()));
      throw e;
    }
    this.parts = new ControllerParts(function, options, bringUp, this, steps);
    this.admin = parts.admin();
    this.queues = parts.queues();
    try {
      parts.setUp();
    } catch (RuntimeException | Error e) {
      parts.keepAlive().stop();
      CloseAll.after(e, () -> giveBack(parts.hostMemoryBuffer()::free, admin::close));
      throw e;
    }
    up = true;
  }

  /** The controller may be in any state: its memory goes only if its DMA could be stopped. */
  private void giveBack(@Nullable AutoCloseable... memory) {
    try {
      registers.cc(registers.cc().with(Cc.EN, false));
    } finally {
      quiesce();
      CloseAll.all(memory);
    }
  }

  // ---- reset

  /** Controller reset (Base 2.0, 3.7.2) and everything up to where {@code open} ended. */
  void reset() {
    lock.lock();
    try {
      requireOpen();
      admin.beginReset();
      queues.breakAll();
      RuntimeException failure = null;
      try {
        if (failed) {
          resetFunction();
        }
        bringUpAgain();
      } catch (RuntimeException | Error e) {
        failure =
            switch (e) {
              case NvmeException typed -> typed;
              case InvalidRequestException typed -> typed;
              default -> internal(e);
            };
        quiesce();
        failure = withDoubt(failure);
        queues.forgotten();
        admin.endOutstanding();
        throw failure;
      } finally {
        outOfService = failure;
        up = failure == null;
        failed = !up;
        admin.endReset(failure);
      }
      resets.incrementAndGet();
    } finally {
      lock.unlock();
    }
  }

  /** A controller reset has failed before: try the next stronger thing, if the transport has it. */
  private void resetFunction() {
    try {
      function.reset();
    } catch (NvmeException | InvalidRequestException e) {
      NvmeController.LOG.log(System.Logger.Level.DEBUG, "function reset", e);
    }
  }

  private void bringUpAgain() {
    steps.clear();
    BringUp bringUp = new BringUp(function, options, admin.queue(), steps::add);
    bringUp.runTo(BringUp.State.ADMIN_QUEUES);
    // Disabled: no command's data is touched any more.
    queues.forgotten();
    admin.endOutstanding();
    bringUp.run();
    parts.setUp();
  }

  private static NvmeException internal(Throwable e) {
    NvmeException wrapped = new ControllerFatalException("controller reset failed: " + e);
    wrapped.initCause(e);
    return wrapped;
  }

  @Override
  public String reset(String why, BooleanSupplier needed) {
    lock.lock();
    try {
      if (!needed.getAsBoolean()) {
        return "somebody else reset the controller";
      }
      if (!up) {
        quiesce();
        return "its DMA was stopped";
      }
      NvmeController.LOG.log(System.Logger.Level.DEBUG, "resetting {0}: {1}", name(), why);
      long start = System.nanoTime();
      reset();
      return "the controller was reset in %.1f ms".formatted((System.nanoTime() - start) / 1e6);
    } catch (NvmeException | InvalidRequestException e) {
      return "resetting the controller failed: " + e.getMessage();
    } finally {
      lock.unlock();
    }
  }

  /** Where it is not certain that the DMA has stopped, those who use the memory are told so. */
  @Override
  public void quiesce() {
    boolean certain = function.stopDma();
    if (!certain && !doubted) {
      NvmeController.LOG.log(System.Logger.Level.WARNING, String.valueOf(function.inDoubt()));
    }
    doubted = !certain;
  }

  /** A failure that ends commands, with what is to be known of their buffers. */
  private RuntimeException withDoubt(RuntimeException failure) {
    String doubt = function.inDoubt();
    if (doubt == null) {
      return failure;
    }
    DeviceGoneException told = new DeviceGoneException(failure.getMessage() + "; " + doubt);
    told.initCause(failure);
    return told;
  }

  /** The device is gone: nobody waits for it any more. */
  void takeOutOfService(RuntimeException reason) {
    lock.lock();
    try {
      if (!closed) {
        stop(reason);
        failed = true;
      }
    } finally {
      lock.unlock();
    }
  }

  private void stop(RuntimeException reason) {
    up = false;
    outOfService = reason;
    admin.beginReset();
    queues.breakAll();
    quiesce();
    RuntimeException told = withDoubt(reason);
    outOfService = told;
    queues.forgotten();
    admin.endOutstanding();
    admin.endReset(told);
  }

  // ---- shutdown

  /**
   * Orderly shutdown (Base 2.0, 3.6.1): queues deleted, host memory taken back, CC.SHN, CSTS.SHST
   * waited for.
   */
  void shutdown() {
    lock.lock();
    try {
      parts.keepAlive().stop();
      if (closed || !up) {
        return;
      }
      RuntimeException reason =
          new InvalidRequestException(name() + " was shut down; reset() starts it again");
      try {
        queues.deleteAllAtController();
        takeBackHostMemory();
        if (up) {
          notifyShutdown();
        }
      } finally {
        stop(reason);
        parts.hostMemoryBuffer().free();
      }
    } finally {
      lock.unlock();
    }
  }

  private void takeBackHostMemory() {
    try {
      parts.hostMemoryBuffer().disable(admin);
    } catch (NvmeStatusException | CommandAbortedException e) {
      NvmeController.LOG.log(System.Logger.Level.DEBUG, "host memory buffer", e);
    }
  }

  /**
   * How long to wait for an orderly shutdown.
   *
   * @param rtd3e RTD3E, microseconds; a controller may claim more than an hour, and is not believed
   */
  static long shutdownNanos(long optionNanos, long rtd3e) {
    return Math.max(
        optionNanos, Math.min(TimeUnit.MICROSECONDS.toNanos(rtd3e), LONGEST_RTD3E_NANOS));
  }

  private void notifyShutdown() {
    registers.cc(registers.cc().with(Cc.SHN, Cc.SHN_NORMAL));
    long start = System.nanoTime();
    long limit =
        shutdownNanos(
            options.shutdownTimeout().toNanos(),
            parts.identify().getLong(IdentifyController.RTD3E));
    while (true) {
      registers.requireAlive("shutdown");
      if (registers.csts().get(Csts.SHST) == Csts.SHST_COMPLETE) {
        return;
      }
      if (System.nanoTime() - start >= limit) {
        throw new NvmeTimeoutException(
            "shutdown of %s is not complete after %d ms; %s"
                .formatted(name(), limit / 1_000_000, registers.describe()));
      }
      LockSupport.parkNanos(POLL_NANOS);
    }
  }

  /**
   * Shuts down if possible and gives everything back. Idempotent; never throws for the controller.
   */
  void close() {
    lock.lock();
    try {
      if (closed) {
        return;
      }
      CloseAll steps = new CloseAll();
      steps.run(this::shutdownOrWarn);
      // Nothing is freed before this has succeeded.
      stop(new InvalidRequestException(name() + " is closed"));
      closed = true;
      steps.run(parts.hostMemoryBuffer()::free);
      steps.run(queues::close);
      steps.run(admin::close);
      steps.run(function::close);
      steps.<RuntimeException>end();
    } finally {
      lock.unlock();
    }
  }

  private void shutdownOrWarn() {
    try {
      shutdown();
    } catch (NvmeException | InvalidRequestException e) {
      NvmeController.LOG.log(System.Logger.Level.WARNING, "shutdown of " + name(), e);
    }
  }

  private void requireOpen() {
    if (closed) {
      throw new InvalidRequestException(name() + " is closed");
    }
  }

  // ---- the parts

  /** The namespaces as they are now. */
  List<Namespace> rescan() {
    lock.lock();
    try {
      return parts.scan();
    } finally {
      lock.unlock();
    }
  }

  String name() {
    return function.name();
  }

  PciFunction function() {
    return function;
  }

  ControllerOptions options() {
    return options;
  }

  ReentrantLock lock() {
    return lock;
  }

  List<BringUpStep> steps() {
    return List.copyOf(steps);
  }

  ControllerRegisters registers() {
    return registers;
  }

  ControllerParts parts() {
    return parts;
  }

  AdminQueue admin() {
    return admin;
  }

  IoQueues queues() {
    return queues;
  }

  /** Why nothing can be done with the controller, or null. */
  @Nullable RuntimeException outOfService() {
    return outOfService;
  }

  /** Whether every queue pair's memory is gone; asked with the lock held. */
  boolean closed() {
    return closed;
  }

  /** How often the controller was reset. */
  long resets() {
    return resets.get();
  }
}
