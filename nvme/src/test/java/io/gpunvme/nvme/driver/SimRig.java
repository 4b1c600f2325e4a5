package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimConfigBuilder;
import io.gpunvme.sim.SimulatedController;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/** A driver with short deadlines on an embedded controller that is told to go wrong. */
final class SimRig implements AutoCloseable {
  static final int BLOCK = 512;
  static final long TIMEOUT_NANOS = 250_000_000;

  private static final int BUFFER = 1 << 20;

  final SimulatedController device;
  final NvmeController controller;
  final DmaBuffer buffer;
  private final List<BlockDevice> devices = new ArrayList<>();

  SimRig() {
    this(c -> {}, o -> {});
  }

  SimRig(Consumer<SimConfigBuilder> config, Consumer<ControllerOptions.Builder> options) {
    SimConfigBuilder c = SimConfig.builder().latencyNanos(0).to(1);
    config.accept(c);
    device = SimulatedController.create(c.build());
    ControllerOptions.Builder o =
        ControllerOptions.builder()
            .allowWrite(true)
            .ioTimeout(Duration.ofNanos(TIMEOUT_NANOS))
            .recoveryTimeout(Duration.ofMillis(500))
            .adminTimeout(Duration.ofSeconds(2));
    options.accept(o);
    controller = NvmeController.open(device, o.build());
    buffer = DmaBuffer.allocate(device, BUFFER);
  }

  SimRig faults(String rules) {
    device.faults().add(rules);
    return this;
  }

  void heal() {
    device.faults().clear();
  }

  BlockDevice blocks(int depth) {
    BlockDevice d = BlockDevice.open(controller, controller.namespace(1), depth);
    devices.add(d);
    return d;
  }

  /** Writes, clears, reads back; whether what came back is right. */
  boolean roundTrip(BlockDevice d, long slba, long blocks, int mark) {
    Blocks.fill(buffer.memory(), 0, slba, blocks, BLOCK, mark);
    d.write(slba, blocks, buffer.range(), 0);
    return readsBack(d, slba, blocks, mark);
  }

  boolean readsBack(BlockDevice d, long slba, long blocks, int mark) {
    buffer.memory().fill((byte) 0);
    d.read(slba, blocks, buffer.range(), 0);
    return Blocks.mismatch(buffer.memory(), 0, slba, blocks, BLOCK, mark) < 0;
  }

  /** Submits one-block reads of LBA 0, 1, … with the LBA as user data, and rings once. */
  void submitReads(QueuePair queue, int count) {
    for (int i = 0; i < count; i++) {
      queue.submitIo(IoOpcode.READ, 1, i, 1, 0, buffer.range(), (long) i * BLOCK, BLOCK, i);
    }
    queue.ring();
  }

  static void await(String what, BooleanSupplier condition) {
    long start = System.nanoTime();
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() - start > 10_000_000_000L) {
        throw new AssertionError("waited too long for " + what);
      }
      Thread.onSpinWait();
    }
  }

  @Override
  public void close() {
    heal();
    devices.forEach(BlockDevice::close);
    buffer.close();
    controller.close();
    if (device.internalError() != null) {
      throw new AssertionError("the embedded controller has a bug", device.internalError());
    }
  }
}
