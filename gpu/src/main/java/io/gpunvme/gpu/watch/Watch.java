package io.gpunvme.gpu.watch;

import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.sim.SimulatedController;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/**
 * The controllers of this process that others may watch ({@code gpunvme top}): while there are any,
 * the process answers at a socket in the user's {@link RunFolder}.
 *
 * <p>Nothing here ever fails, and nothing that drives a controller waits for it, but for the last
 * one's end, which waits for a socket that is being made: a process that cannot be watched works as
 * if nobody wanted to. {@code GPUNVME_TOP=off} in the environment turns it off. Safe for all
 * threads.
 */
public final class Watch {
  private static final System.Logger LOG = System.getLogger("io.gpunvme.gpu.watch");
  private static final boolean ON = !"off".equals(System.getenv("GPUNVME_TOP"));
  private static final List<Watched> OPEN = new CopyOnWriteArrayList<>();

  /** Held while controllers come and go, by nobody who does I/O. */
  private static final Object LOCK = new Object();

  /** Guarded by {@link #LOCK}. */
  private static @Nullable WatchServer server;

  /** Guarded by {@link #LOCK}. */
  private static long count;

  private Watch() {}

  /**
   * Lets others watch a controller until it is closed.
   *
   * @param address by which it was opened
   */
  public static void driven(String address, NvmeController controller) {
    if (ON) {
      try {
        Watched one = new DrivenController(address, next(), controller);
        controller.onClose(() -> remove(one));
        add(one);
      } catch (RuntimeException | Error e) {
        missed(address, e);
      }
    }
  }

  /** A controller that others may watch until this is closed. */
  @FunctionalInterface
  public interface Registration extends AutoCloseable {
    /** Idempotent. */
    @Override
    void close();
  }

  /**
   * Lets others watch a controller that this process is.
   *
   * @param address by which clients open it
   */
  public static Registration served(String address, SimulatedController controller) {
    if (ON) {
      try {
        Watched one = new ServedController(address, next(), controller);
        add(one);
        return () -> remove(one);
      } catch (RuntimeException | Error e) {
        missed(address, e);
      }
    }
    return () -> {};
  }

  /** Telling may need what the system is short of. */
  static void missed(String what, Throwable why) {
    try {
      LOG.log(System.Logger.Level.DEBUG, "nobody can watch " + what, why);
    } catch (RuntimeException | Error e) {
      // The work is more important.
    }
  }

  private static long next() {
    synchronized (LOCK) {
      return ++count;
    }
  }

  private static void add(Watched one) {
    synchronized (LOCK) {
      OPEN.add(one);
      try {
        if (server == null) {
          server = WatchServer.start(Watch::text);
        }
      } catch (RuntimeException | Error e) {
        // The next controller may have more luck.
        missed("this process", e);
      }
    }
  }

  private static void remove(Watched one) {
    try {
      WatchServer last = null;
      synchronized (LOCK) {
        OPEN.remove(one);
        if (OPEN.isEmpty()) {
          last = server;
          server = null;
        }
      }
      if (last != null) {
        last.close();
      }
    } catch (RuntimeException | Error e) {
      missed("this process", e);
    }
  }

  /** What is to be told now. */
  static String text() {
    MetricText text = new MetricText();
    OPEN.forEach(one -> one.addTo(text));
    return text.toString();
  }
}
