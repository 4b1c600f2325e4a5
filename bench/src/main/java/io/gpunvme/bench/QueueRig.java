package io.gpunvme.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.nvme.driver.Backoff;
import io.gpunvme.nvme.driver.CompletionSink;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueuePair;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.pci.vfiouser.VfioUserFunction;
import io.gpunvme.nvme.pci.vfiouser.VfioUserOptions;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.tools.bench.BenchServer;
import java.util.Optional;
import java.util.function.Function;

/**
 * A queue pair of the driver kept full of 4 KiB commands in the benchmarks' random order, each
 * checked when it completes. The controller is in this process or, behind a socket, in another.
 */
final class QueueRig implements AutoCloseable, CompletionSink {
  /** Commands in flight, unless told otherwise. */
  static final int DEPTH = 64;

  /** This part of the commands in flight is announced by one doorbell store. */
  private static final int BATCHES = 4;

  private static final int PLACE_BITS = 8;

  private final Optional<SimulatedController> device;
  private final Optional<BenchServer> server;
  private final int depth;
  private final NvmeController controller;
  private final QueuePair queue;
  private final DmaBuffer target;
  private final Blocks blocks;
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
    this(controller(workers, copies, Blocks.IMAGE), wrapper, copies, DEPTH, Blocks.IMAGE);
  }

  /** With a controller in this process that has a thread and moves data. */
  static QueueRig here(int depth, long image) {
    return new QueueRig(controller(1, true, image), device -> device, true, depth, image);
  }

  /** With a controller in another process. */
  static QueueRig apart(int depth, long image) {
    BenchServer server = BenchServer.start(image, Blocks.SIZE, 1);
    try {
      PciFunction function = VfioUserFunction.open(server.socket(), VfioUserOptions.defaults());
      return new QueueRig(
          function, Optional.empty(), Optional.of(server), false, true, depth, image);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, server::close);
      throw e;
    }
  }

  private static SimulatedController controller(int workers, boolean copies, long image) {
    NamespaceConfig namespace =
        copies
            ? NamespaceConfig.ram(image, Blocks.SIZE)
            : NamespaceConfig.discarding(image, Blocks.SIZE);
    return SimulatedController.create(
        SimConfig.builder()
            .noNamespaces()
            .namespace(namespace)
            .latencyNanos(0)
            .workers(workers)
            .build());
  }

  private QueueRig(
      SimulatedController device,
      Function<SimulatedController, PciFunction> wrapper,
      boolean copies,
      int depth,
      long image) {
    this(
        wrapper.apply(device),
        Optional.of(device),
        Optional.empty(),
        device.simConfig().workers() == 0,
        copies,
        depth,
        image);
  }

  private QueueRig(
      PciFunction function,
      Optional<SimulatedController> device,
      Optional<BenchServer> server,
      boolean pumped,
      boolean copies,
      int depth,
      long image) {
    this.device = device;
    this.server = server;
    this.copies = copies;
    this.depth = depth;
    blocks = new Blocks(image);
    try (Pump pump = new Pump(device, pumped)) {
      controller =
          NvmeController.open(function, ControllerOptions.builder().allowWrite(true).build());
      // One slot more than commands in flight: the sink submits before its own slot is free.
      queue = controller.createQueuePair(depth + 1);
      target = DmaBuffer.allocate(function, (long) depth * Blocks.SIZE);
      if (copies) {
        fill();
      }
    }
  }

  private void fill() {
    long[] failed = new long[1];
    for (long block = 0; block < blocks.count(); block++) {
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

  /** Puts the first reads in flight, as many as there may be. */
  void start() {
    for (int place = 0; place < depth; place++) {
      submit(IoOpcode.READ, blocks.next(), place);
    }
    queue.ring();
    rung = queue.submitted();
  }

  /** A turn of the controller, where it has no thread of its own. */
  void work() {
    device.orElseThrow().poll();
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
      if (queue.submitted() - rung >= Math.max(1, depth / BATCHES)) {
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
    try (Pump pump = new Pump(device, device.isPresent())) {
      controller.close();
    }
    target.close();
    server.ifPresent(BenchServer::close);
    if (wrong != 0 || lost != 0) {
      throw new IllegalStateException(
          wrong + " commands failed or brought the wrong block, " + lost + " stray completions");
    }
  }

  /** The controller's thread while the driver makes calls that wait for it. */
  private static final class Pump implements AutoCloseable {
    private final Thread thread;

    Pump(Optional<SimulatedController> device, boolean needed) {
      thread =
          Thread.ofPlatform()
              .daemon()
              .unstarted(
                  () -> {
                    while (!Thread.currentThread().isInterrupted()) {
                      device.orElseThrow().poll();
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
