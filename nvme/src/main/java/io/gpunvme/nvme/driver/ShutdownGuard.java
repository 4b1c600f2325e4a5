package io.gpunvme.nvme.driver;

import io.gpunvme.base.InvalidRequestException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
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

  private ShutdownGuard() {}

  /** Installs one shutdown hook for all controllers; a second call changes nothing. */
  public static void install() {
    if (INSTALLED.compareAndSet(false, true)) {
      Runtime.getRuntime().addShutdownHook(new Thread(ShutdownGuard::end, "gpunvme-shutdown"));
    }
  }

  /**
   * For whoever knows that the process ends where no hook runs: shuts down all controllers. From
   * here on none can be opened.
   */
  public static void end() {
    ended = true;
    closeAll();
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
