package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.spec.Vs;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The contract on a controller that is different in everything: 2.0, several namespaces and block
 * sizes, short queues and transfers, wide doorbell stride, out of order, two workers, no SGL, slow
 * to become ready.
 */
class UnusualSimulatedControllerContractTest extends ControllerContract {
  private static final long SIZE = 32 << 20;

  @TempDir Path folder;
  private SimulatedController device;

  @Override
  PciFunction function() {
    device =
        SimulatedController.create(
            SimConfig.builder()
                .namespace(NamespaceConfig.file(folder.resolve("ns1"), SIZE, 4096))
                .namespace(NamespaceConfig.file(folder.resolve("ns2"), SIZE, 512))
                .namespace(NamespaceConfig.file(folder.resolve("ns3"), SIZE, 1024))
                .maxNamespaces(100)
                .version(Vs.V2_0)
                .maxTransfer(8192)
                .mqes(20)
                .ioQueues(5)
                .dstrd(3)
                .sgl(false)
                .outOfOrder(true)
                .latencyNanos(0)
                .workers(2)
                .readyNanos(20_000_000)
                .shutdownNanos(20_000_000)
                .hmbPreferred(512)
                .hmbMinimum(16)
                .aerl(0)
                .acl(0)
                .build());
    return device;
  }

  @Override
  List<Expected> expected() {
    return List.of(
        new Expected(1, 4096, SIZE / 4096),
        new Expected(2, 512, SIZE / 512),
        new Expected(3, 1024, SIZE / 1024));
  }

  @Override
  boolean mayFormat() {
    return true;
  }

  @Test
  void lendsTheHostMemoryItAsksFor() {
    assertThat(controller.hostMemoryBuffer().bytes()).isEqualTo(512 * 4096);
    controller.reset();
    assertThat(controller.hostMemoryBuffer().bytes()).isEqualTo(512 * 4096);
    controller.shutdown();
    assertThat(controller.hostMemoryBuffer().bytes()).isZero();
  }

  @AfterEach
  void nothingWasWrongInside() {
    assertThat(device.internalError()).isNull();
    assertThat(device.stats().dmaRefusals()).isZero();
    assertThat(device.stats().duplicateCids()).isZero();
    if (controller.resets() == 0) {
      assertThat(device.stats().doorbellErrors()).isZero();
    }
  }
}
