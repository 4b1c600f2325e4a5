package io.gpunvme.core.bench;

import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.sim.DoorbellWindow;
import io.gpunvme.nvme.sim.NamespaceConfig;
import io.gpunvme.nvme.sim.SimConfig;
import io.gpunvme.nvme.sim.SimulatedController;
import java.lang.foreign.MemorySegment;

/** An embedded SSD in memory, without latency of its own, for a benchmark. */
final class BenchDevice implements AutoCloseable {
  /**
   * CAP.DSTRD: 128 bytes between doorbells. They are memory here, written by a GPU and polled by
   * several threads; with the usual 4 bytes all of them would lie in a few cache lines.
   */
  private static final int DOORBELL_STRIDE = 5;

  /** Longest transfer of one command. */
  static final long MAX_TRANSFER = 1 << 20;

  private final SimulatedController device;
  private final NvmeController controller;

  /**
   * @param bytes of the one namespace
   * @param blockSize of its logical blocks
   * @param workers threads of the controller
   */
  BenchDevice(long bytes, int blockSize, int workers) {
    this("GPUNVME0001", bytes, blockSize, workers, MAX_TRANSFER);
  }

  /**
   * One of several.
   *
   * @param serial number, by which it is told from the others
   * @param maxTransfer longest transfer of one command, a power of two
   */
  BenchDevice(String serial, long bytes, int blockSize, int workers, long maxTransfer) {
    device =
        SimulatedController.create(
            SimConfig.builder()
                .namespace(NamespaceConfig.ram(bytes, blockSize))
                .latencyNanos(0)
                .dstrd(DOORBELL_STRIDE)
                .serial(serial)
                .maxTransfer(maxTransfer)
                .workers(workers)
                .build());
    ControllerOptions options = ControllerOptions.builder().maxTransferBytes(maxTransfer).build();
    controller = NvmeController.open(device, options);
  }

  NvmeController controller() {
    return controller;
  }

  Namespace namespace() {
    return controller.namespace(1);
  }

  /** The bytes of the namespace. */
  MemorySegment medium() {
    return device.mediaMemory(1).orElseThrow();
  }

  /** I/O commands so far that the CPU asked for. */
  long commandsByCpu() {
    return device.stats().ioCommands(DoorbellWindow.CPU);
  }

  /** Bytes read from the medium so far. */
  long readBytes() {
    return device.stats().readBytes();
  }

  /**
   * Checks that the GPU alone has asked since {@code before}.
   *
   * @throws BenchException if the CPU has
   */
  void requireNoneByCpu(String id, long before) {
    long count = commandsByCpu() - before;
    if (count != 0) {
      throw new BenchException(id + ": the CPU submitted " + count + " commands");
    }
  }

  @Override
  public void close() {
    controller.close();
  }
}
