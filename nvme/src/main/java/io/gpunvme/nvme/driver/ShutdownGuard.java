package io.gpunvme.nvme.driver;

import io.gpunvme.base.InvalidRequestException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Shuts open controllers down in order when the process is told to end (Ctrl-C, SIGTERM, exit).
 * Does nothing until {@link #install} or {@link #end} was called; a library user may prefer a hook
 * of their own.
 */
public final class ShutdownGuard {
  private static final Set<AutoCloseable> OPEN = ConcurrentHashMap.newKeySet();
  private static final AtomicBoolean INSTALLED = new AtomicBoolean();
  private static volatile boolean ended;

  /** Longer than any controller needs that answers at all. */
  private static final long PATIENCE_NANOS = TimeUnit.MINUTES.toNanos(10);

  /** Delays that are not over; guarded by {@link #OPEN}. */
  private static int delays;

  private ShutdownGuard() {}

  /** Installs one shutdown hook for all controllers; a second call changes nothing. */
  public static void install() {
    if (INSTALLED.compareAndSet(false, true)) {
      Runtime.getRuntime().addShutdownHook(new Thread(ShutdownGuard::end, "gpunvme-shutdown"));
    }
  }

  /**
   * For whoever knows that the process ends where no hook runs: shuts down all controllers, when
   * {@link #delay delays} are over. From here on none can be opened.
   */
  public static void end() {
    ended = true;
    awaitDelays();
    closeAll();
  }

  /** Something that has to be done with open controllers first. */
  public static final class Delay implements AutoCloseable {
    private boolean over;

    private Delay() {}

    /** It is done. Idempotent. */
    @Override
    public void close() {
      synchronized (OPEN) {
        if (!over) {
          over = true;
          delays--;
          OPEN.notifyAll();
        }
      }
    }
  }

  /** Controllers that are open stay so until this is closed, also when the process is ending. */
  public static Delay delay() {
    synchronized (OPEN) {
      delays++;
      return new Delay();
    }
  }

  /** Waits until all delays are over, ten minutes at most. */
  public static void awaitDelays() {
    long end = System.nanoTime() + PATIENCE_NANOS;
    synchronized (OPEN) {
      try {
        for (long left = PATIENCE_NANOS; delays > 0 && left > 0; left = end - System.nanoTime()) {
          TimeUnit.NANOSECONDS.timedWait(OPEN, left);
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Whether {@link #end} was called, or a hook has run. */
  public static boolean ended() {
    return ended;
  }

  /**
   * Remembers a controller.
   *
   * @throws InvalidRequestException if the process is ending; the controller is closed then
   */
  static void add(NvmeController controller) {
    OPEN.add(controller);
    // The end says so before it looks for controllers, so one of the two sees the other.
    if (ended) {
      controller.close();
      throw new InvalidRequestException(controller.name() + " comes too late: all are shut down");
    }
  }

  static void remove(AutoCloseable controller) {
    OPEN.remove(controller);
  }

  static int open() {
    return OPEN.size();
  }

  /** Closes those that are open now. */
  static void closeAll() {
    for (AutoCloseable controller : Set.copyOf(OPEN)) {
      try {
        controller.close();
      } catch (Exception e) {
        NvmeController.LOG.log(System.Logger.Level.WARNING, "shutdown of a controller failed", e);
      }
    }
  }
}
