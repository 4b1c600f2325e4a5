package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceLayout.Recovery;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueuePair.State;
import io.gpunvme.nvme.driver.RecoveryOutcome;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * Recovers the shared queues of one SSD while kernels use them: the host's part of {@code
 * recovery.cuh}. The kernel pauses at the queues, this makes queue pairs anew at the controller,
 * the kernel sets their words back and goes on. Safe for all threads.
 */
final class LiveRecovery implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger("io.gpunvme.gpu.queue");

  /** How often quarantined commands are looked for, by one copy. */
  private static final long EVERY_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  /** A kernel pauses within milliseconds, or not at all. */
  private static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(5);

  // Phases of a kernel, namespace recovery.
  private static final int RUNS = 0;
  private static final int PAUSING = 1;
  private static final int PAUSED = 2;

  private enum Phase {
    IDLE,
    ASKED,
    MADE
  }

  private final DeviceQueues queues;
  private final NvmeController controller;
  private final DeviceBuffer struct;

  // Guarded by this.
  private Phase phase = Phase.IDLE;
  private int number;
  private int recoveries;
  private long looked;
  private long asked;

  /** When no caller had begun to pause yet. */
  private long pausing;

  private boolean sawQuarantined;

  /** Of the recovery that is under way; kept if something fails in the middle. */
  private final Set<DeviceQueue> anew = new HashSet<>();

  private volatile boolean failed;

  /**
   * @param count how many queues there will be
   */
  LiveRecovery(DeviceQueues queues, NvmeController controller, Accelerator accelerator, int count) {
    this.queues = queues;
    this.controller = controller;
    struct = accelerator.allocate(Recovery.SIZE);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate(Recovery.SIZE, Long.BYTES);
      DeviceLayout.setInt(all, Recovery.QUEUE_COUNT, count);
      DeviceLayout.setLong(all, Recovery.QUEUES, queues.deviceAddress());
      struct.copyFromHost(all, 0);
    }
  }

  long deviceAddress() {
    return struct.deviceAddress();
  }

  /** Whether the SSD could not be brought back: the kernel has nothing to wait for. */
  boolean failed() {
    return failed;
  }

  /** How many have come to their end while kernels ran. */
  synchronized int recoveries() {
    return recoveries;
  }

  /**
   * Does what there is to do. Called now and then by whoever waits for a kernel.
   *
   * @return whether kernels are to look after a recovery
   */
  synchronized boolean look() {
    if (failed) {
      return false;
    }
    switch (phase) {
      case IDLE -> {
        if (queues.troubled() || quarantinedForLong()) {
          set(Recovery.ASKED, number + 1);
          number++;
          phase = Phase.ASKED;
          asked = System.nanoTime();
          pausing = asked;
          LOG.log(System.Logger.Level.DEBUG, "{0} is recovered while kernels use it", name());
        }
      }
      case ASKED -> {
        int state = state();
        // It may be long before a caller comes at all.
        if (state == state(number - 1, RUNS)) {
          pausing = System.nanoTime();
        }
        // A kernel that was told to stop has left the pause to nobody, or one that hangs is in its
        // way.
        boolean stuck =
            state == state(number - 1, PAUSING) && System.nanoTime() - pausing > PAUSE_NANOS;
        if (stuck) {
          LOG.log(System.Logger.Level.WARNING, "{0}: kernels do not pause", name());
          failed = true;
        } else if (state == state(number - 1, PAUSED)) {
          LOG.log(
              System.Logger.Level.DEBUG,
              "kernels have paused after {0} us",
              (System.nanoTime() - asked) / 1000);
          makeAnew();
        }
      }
      case MADE -> {
        if (state() == state(number, RUNS)) {
          phase = Phase.IDLE;
          recoveries++;
        }
      }
    }
    return phase != Phase.IDLE && !failed;
  }

  /**
   * No kernel runs any more. What was begun is ended by {@link #recovered}, once all queues are.
   *
   * @return whether all queues must be recovered, as a kernel has left them in the middle, or the
   *     last recovery has failed
   */
  synchronized boolean end() {
    sawQuarantined = false;
    if (phase == Phase.IDLE) {
      return failed;
    }
    int state = state();
    if (phase == Phase.MADE && state == state(number, RUNS)) {
      phase = Phase.IDLE;
      recoveries++;
      return failed;
    }
    if (state != state(number - 1, RUNS)) {
      return true;
    }
    set(Recovery.ASKED, number - 1);
    number--;
    phase = Phase.IDLE;
    return failed;
  }

  /** All queues were recovered while no kernel ran. */
  synchronized void recovered() {
    if (phase != Phase.IDLE) {
      set(Recovery.MADE, number);
      set(Recovery.STATE, state(number, RUNS));
      phase = Phase.IDLE;
    }
    anew.clear();
    sawQuarantined = false;
    failed = false;
  }

  /** The queues are gone: nothing recovers them. */
  void giveUp() {
    failed = true;
  }

  /** A late completion may still free what has just been quarantined. */
  private boolean quarantinedForLong() {
    long now = System.nanoTime();
    if (now - looked < EVERY_NANOS) {
      return false;
    }
    looked = now;
    boolean before = sawQuarantined;
    sawQuarantined = queues.queues().stream().anyMatch(q -> q.quarantined() > 0);
    return before && sawQuarantined;
  }

  /**
   * Nobody is at the rings. The recovery of one queue may reset the controller, and take others.
   */
  private void makeAnew() {
    boolean all = controller.troubled();
    boolean again = true;
    for (int pass = 0; again && pass <= queues.queues().size(); pass++) {
      again = false;
      for (DeviceQueue queue : queues.queues()) {
        boolean lost = queue.pair().state() != State.READY;
        if (lost || !anew.contains(queue) && (all || queue.quarantined() > 0)) {
          RecoveryOutcome outcome = controller.recover(queue.pair());
          LOG.log(System.Logger.Level.DEBUG, "{0} of {1}: {2}", queue.pair(), name(), outcome);
          if (!outcome.recovered()) {
            failed = true;
            return;
          }
          anew.add(queue);
          again = true;
        }
      }
    }
    anew.forEach(q -> q.tellRecovered(number));
    anew.clear();
    // Behind the empty rings and the words above: each copy is over when it returns.
    set(Recovery.MADE, number);
    sawQuarantined = false;
    phase = Phase.MADE;
  }

  private String name() {
    return controller.name();
  }

  private static int state(int number, int phase) {
    return number << 2 | phase;
  }

  private int state() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment word = arena.allocate(Integer.BYTES, Integer.BYTES);
      struct.copyToHost(Recovery.STATE, word);
      return DeviceLayout.getInt(word, 0);
    }
  }

  private void set(long offset, int value) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment word = arena.allocate(Integer.BYTES, Integer.BYTES);
      DeviceLayout.setInt(word, 0, value);
      struct.copyFromHost(word, offset);
    }
  }

  @Override
  public void close() {
    struct.close();
  }
}
