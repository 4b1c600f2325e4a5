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
import java.util.List;
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

  // Phases of a kernel, namespace recovery.
  private static final int RUNS = 0;
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
  private boolean sawQuarantined;

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
   * @param stops the words that kernels look at
   */
  synchronized void look(List<StopWord> stops) {
    if (failed) {
      return;
    }
    switch (phase) {
      case IDLE -> {
        if (queues.troubled() || quarantinedForLong()) {
          number++;
          set(Recovery.ASKED, number);
          phase = Phase.ASKED;
          asked = System.nanoTime();
          LOG.log(System.Logger.Level.INFO, "{0} is recovered while kernels use it", name());
          stops.forEach(s -> s.recover(true));
        }
      }
      case ASKED -> {
        if (state() == state(number - 1, PAUSED)) {
          LOG.log(
              System.Logger.Level.INFO,
              "kernels have paused after {0} us",
              (System.nanoTime() - asked) / 1000);
          makeAnew();
        }
      }
      case MADE -> {
        if (state() == state(number, RUNS)) {
          over(stops);
          recoveries++;
        }
      }
    }
  }

  /**
   * No kernel runs any more: what was begun is ended here.
   *
   * @return whether the queues must be recovered, as a kernel has left them in the middle
   */
  synchronized boolean end(List<StopWord> stops) {
    sawQuarantined = false;
    failed = false;
    if (phase == Phase.IDLE) {
      return false;
    }
    boolean over = phase == Phase.MADE && state() == state(number, RUNS);
    boolean begun = !over && state() != state(number - 1, RUNS);
    over(stops);
    if (over) {
      recoveries++;
    } else if (begun) {
      set(Recovery.MADE, number);
      set(Recovery.STATE, state(number, RUNS));
    } else {
      number--;
      set(Recovery.ASKED, number);
    }
    return begun;
  }

  private void over(List<StopWord> stops) {
    stops.forEach(s -> s.recover(false));
    phase = Phase.IDLE;
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
    Set<DeviceQueue> anew = new HashSet<>();
    boolean all = controller.troubled();
    boolean again = true;
    for (int pass = 0; again && pass <= queues.queues().size(); pass++) {
      again = false;
      for (DeviceQueue queue : queues.queues()) {
        boolean lost = queue.pair().state() != State.READY;
        if (lost || !anew.contains(queue) && (all || queue.quarantined() > 0)) {
          RecoveryOutcome outcome = controller.recover(queue.pair());
          LOG.log(System.Logger.Level.INFO, "{0} of {1}: {2}", queue.pair(), name(), outcome);
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
