package io.gpunvme.nvme.driver;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.IdentifyController;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Keep Alive (Base 2.0, 3.9 and 5.18): a controller that hears nothing for the Keep Alive Timeout
 * stops. Optional on PCIe; a daemon thread sends a command three times as often as needed.
 */
public final class KeepAlive {
  private static final int KAS_UNIT_MILLIS = 100;
  private static final int SENDS_PER_TIMEOUT = 3;

  private final AdminQueue admin;
  private volatile @Nullable Sender sender;
  private volatile @Nullable RuntimeException failure;

  KeepAlive(AdminQueue admin) {
    this.admin = admin;
  }

  /** Sends one Keep Alive command. */
  public void send() {
    admin.execute(AdminCommand.of(AdminOpcode.KEEP_ALIVE));
  }

  /** Why the thread gave up, or null. */
  public @Nullable RuntimeException failure() {
    return failure;
  }

  /** Whether the thread is running. */
  public boolean running() {
    Sender current = sender;
    return current != null && !current.stopped && current.thread.isAlive();
  }

  /**
   * After every bring-up: sets the timer, rounded up to the controller's granularity, and starts
   * the thread if it is not running.
   *
   * @return a note for the bring-up report
   */
  String enable(IdentifyController id, Duration timeout) {
    if (id.getInt(IdentifyController.KAS) == 0) {
      throw new InvalidRequestException("the controller has no Keep Alive (KAS is 0)");
    }
    long granularity = (long) id.getInt(IdentifyController.KAS) * KAS_UNIT_MILLIS;
    long millis = Math.ceilDiv(Math.max(1, timeout.toMillis()), granularity) * granularity;
    if (millis > Integer.MAX_VALUE) {
      throw new InvalidRequestException("a Keep Alive Timeout of " + millis + " ms is too long");
    }
    new ControllerFeatures(admin).set(FeatureId.KEEP_ALIVE_TIMER, (int) millis);
    if (!running()) {
      Sender next = new Sender(TimeUnit.MILLISECONDS.toNanos(millis) / SENDS_PER_TIMEOUT);
      sender = next;
      next.thread.start();
    }
    return "KATO " + millis + " ms";
  }

  /** Stops the thread, not the timer. */
  void stop() {
    Sender last = sender;
    if (last != null) {
      last.stopped = true;
      LockSupport.unpark(last.thread);
    }
  }

  private final class Sender implements Runnable {
    final Thread thread = Thread.ofPlatform().daemon().name("gpunvme-keep-alive").unstarted(this);
    final long pauseNanos;
    volatile boolean stopped;

    Sender(long pauseNanos) {
      this.pauseNanos = pauseNanos;
    }

    @Override
    public void run() {
      LockSupport.parkNanos(pauseNanos);
      while (!stopped) {
        try {
          send();
        } catch (CommandAbortedException e) {
          NvmeController.LOG.log(System.Logger.Level.DEBUG, "a reset ended a Keep Alive");
        } catch (NvmeException | InvalidRequestException e) {
          failure = e;
          NvmeController.LOG.log(System.Logger.Level.WARNING, "Keep Alive stopped", e);
          return;
        }
        LockSupport.parkNanos(pauseNanos);
      }
    }
  }
}
