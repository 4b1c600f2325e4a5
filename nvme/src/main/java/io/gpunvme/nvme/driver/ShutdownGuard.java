package io.gpunvme.nvme.driver;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Shuts open controllers down in order when the process is told to end (Ctrl-C, SIGTERM, exit).
 * Does nothing until {@link #install} was called; a library user may prefer a hook of their own.
 */
public final class ShutdownGuard {
  private static final Set<AutoCloseable> OPEN = ConcurrentHashMap.newKeySet();
  private static final AtomicBoolean INSTALLED = new AtomicBoolean();

  private ShutdownGuard() {}

  /** Installs one shutdown hook for all controllers; a second call changes nothing. */
  public static void install() {
    if (INSTALLED.compareAndSet(false, true)) {
      Runtime.getRuntime().addShutdownHook(new Thread(ShutdownGuard::closeAll, "gpunvme-shutdown"));
    }
  }

  static void add(AutoCloseable controller) {
    OPEN.add(controller);
  }

  static void remove(AutoCloseable controller) {
    OPEN.remove(controller);
  }

  static int open() {
    return OPEN.size();
  }

  /** What the hook runs. */
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
