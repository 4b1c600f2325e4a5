package io.gpunvme.bench;

import io.gpunvme.nvme.driver.Backoff;
import io.gpunvme.nvme.driver.CompletionSink;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueuePair;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.sim.NamespaceConfig;
import io.gpunvme.nvme.sim.SimConfig;
import io.gpunvme.nvme.sim.SimulatedController;
import io.gpunvme.nvme.spec.IoOpcode;
import java.util.function.Function;

/**
 * A queue pair of the driver kept full of 4 KiB commands in the benchmarks' random order, each
 * checked when it completes.
 */
final class QueueRig implements AutoCloseable, CompletionSink {
  /** Commands in flight. */
  static final int DEPTH = 64;

  /** Commands one doorbell store announces. */
  private static final int BATCH = 16;

  private static final int PLACE_BITS = 8;

  private final SimulatedController device;
  private final NvmeController controller;
  private final QueuePair queue;
  private final DmaBuffer target;
  private final Blocks blocks = new Blocks();
  private final Backoff backoff = new Backoff();
  private final boolean copies;
  private long rung;
  private long done;
  private long wrong;

  /**
   * Brings a controller up.
   *
   * @param workers threads of the controller; 0: {@link #work} is its thread
   * @param copies whether the controller moves data, or only checks and completes
   * @param wrapper what the driver sees instead of the device itself
   */
  QueueRig(int workers, boolean copies, Function<SimulatedController, PciFunction> wrapper) {
    this.copies = copies;
    NamespaceConfig namespace =
        copies
            ? NamespaceConfig.ram(Blocks.IMAGE, Blocks.SIZE)
            : NamespaceConfig.discarding(Blocks.IMAGE, Blocks.SIZE);
    device =
        SimulatedController.create(
            SimConfig.builder()
                .noNamespaces()
                .namespace(namespace)
                .latencyNanos(0)
                .workers(workers)
                .build());
    PciFunction function = wrapper.apply(device);
    try (Pump pump = new Pump(device, workers == 0)) {
      controller =
          NvmeController.open(function, ControllerOptions.builder().allowWrite(true).build());
      // One slot more than commands in flight: the sink submits before its own slot is free.
      queue = controller.createQueuePair(DEPTH + 1);
      target = DmaBuffer.allocate(function, (long) DEPTH * Blocks.SIZE);
      if (copies) {
        fill();
      }
    }
  }

  private void fill() {
    long[] failed = new long[1];
    for (long block = 0; block < Blocks.COUNT; block++) {
      Blocks.stamp(target.memory(), 0, block);
      submit(IoOpcode.WRITE, block, 0);
      queue.ring();
      while (queue.poll((q, slot, status) -> failed[0] |= status) == 0) {
        Thread.onSpinWait();
      }
    }
    wrong = failed[0];
    target.memory().fill((byte) 0);
  }

  QueuePair queue() {
    return queue;
  }

  /** Puts the first {@link #DEPTH} reads in flight. */
  void start() {
    for (int place = 0; place < DEPTH; place++) {
      submit(IoOpcode.READ, blocks.next(), place);
    }
    queue.ring();
    rung = queue.submitted();
  }

  /** A turn of the controller, where it has no thread of its own. */
  void work() {
    device.poll();
  }

  /** Completions so far. */
  long done() {
    return done;
  }

  /**
   * A turn of the driver: takes what is complete, submits as many again, rings for a batch. The
   * rest of the queue keeps the controller busy meanwhile.
   */
  void turn() {
    if (queue.poll(this) > 0) {
      if (queue.submitted() - rung >= BATCH) {
        queue.ring();
        rung = queue.submitted();
      }
      backoff.reset();
    } else {
      backoff.pause();
    }
  }

  @Override
  public void completed(QueuePair from, int slot, int status) {
    long userData = from.userData(slot);
    int place = (int) userData & (1 << PLACE_BITS) - 1;
    if (status != 0
        || (copies
            && !Blocks.is(target.memory(), (long) place * Blocks.SIZE, userData >>> PLACE_BITS))) {
      wrong++;
    }
    done++;
    submit(IoOpcode.READ, blocks.next(), place);
  }

  private void submit(int opcode, long block, int place) {
    queue.submitIo(
        opcode,
        1,
        block,
        1,
        0,
        target.range(),
        (long) place * Blocks.SIZE,
        Blocks.SIZE,
        block << PLACE_BITS | place);
  }

  /** Shuts down and fails if a command failed or brought the wrong block. */
  @Override
  public void close() {
    long lost = queue.stale() + queue.unknown() + queue.malformed();
    try (Pump pump = new Pump(device, true)) {
      controller.close();
    }
    target.close();
    if (wrong != 0 || lost != 0) {
      throw new IllegalStateException(
          wrong + " commands failed or brought the wrong block, " + lost + " stray completions");
    }
  }

  /** The controller's thread while the driver makes calls that wait for it. */
  private static final class Pump implements AutoCloseable {
    private final Thread thread;

    Pump(SimulatedController device, boolean needed) {
      thread =
          Thread.ofPlatform()
              .daemon()
              .unstarted(
                  () -> {
                    while (!Thread.currentThread().isInterrupted()) {
                      device.poll();
                      Thread.yield();
                    }
                  });
      if (needed) {
        thread.start();
      }
    }

    @Override
    public void close() {
      thread.interrupt();
      try {
        thread.join();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
