package io.gpunvme.tools.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.pci.vfiouser.VfioUserFunction;
import io.gpunvme.nvme.pci.vfiouser.VfioUserOptions;
import io.gpunvme.sim.DoorbellWindow;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/**
 * An embedded SSD in memory, without latency of its own, for a benchmark: in this process, or in
 * another one.
 */
final class BenchDevice implements AutoCloseable {
  /**
   * CAP.DSTRD: 128 bytes between doorbells. They are memory here, written by a GPU and polled by
   * several threads; with the usual 4 bytes all of them would lie in a few cache lines.
   */
  private static final int DOORBELL_STRIDE = 5;

  /** Longest transfer of one command. */
  static final long MAX_TRANSFER = 1 << 20;

  private final Optional<SimulatedController> device;
  private final Optional<BenchServer> server;
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
    SimulatedController here =
        SimulatedController.create(config(serial, bytes, blockSize, workers, maxTransfer));
    device = Optional.of(here);
    server = Optional.empty();
    controller = NvmeController.open(here, options(maxTransfer));
  }

  private BenchDevice(BenchServer server) {
    device = Optional.empty();
    this.server = Optional.of(server);
    VfioUserFunction function = VfioUserFunction.open(server.socket(), VfioUserOptions.defaults());
    controller = NvmeController.open(function, options(MAX_TRANSFER));
  }

  /** One in a process of its own, its blocks stamped. */
  static BenchDevice served(long bytes, int blockSize, int workers) {
    BenchServer server = BenchServer.start(bytes, blockSize, workers);
    return CloseAll.orClose(() -> new BenchDevice(server), server::close);
  }

  static SimConfig config(String serial, long bytes, int blockSize, int workers, long maxTransfer) {
    return SimConfig.builder()
        .namespace(NamespaceConfig.ram(bytes, blockSize))
        .latencyNanos(0)
        .dstrd(DOORBELL_STRIDE)
        .serial(serial)
        .maxTransfer(maxTransfer)
        .workers(workers)
        .build();
  }

  private static ControllerOptions options(long maxTransfer) {
    return ControllerOptions.builder().maxTransferBytes(maxTransfer).build();
  }

  /** The embedded SSD; it must be in this process. */
  private SimulatedController here() {
    return device.orElseThrow();
  }

  NvmeController controller() {
    return controller;
  }

  Namespace namespace() {
    return controller.namespace(1);
  }

  /** The bytes of the namespace. */
  MemorySegment medium() {
    return here().mediaMemory(1).orElseThrow();
  }

  /** I/O commands so far that the CPU asked for; of an SSD in another process 0, always. */
  long commandsByCpu() {
    return device.isEmpty() ? 0 : here().stats().ioCommands(DoorbellWindow.CPU);
  }

  /** Bytes read from the medium so far. */
  long readBytes() {
    return here().stats().readBytes();
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
    server.ifPresent(BenchServer::close);
  }
}
