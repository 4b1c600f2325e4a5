package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;

/** The contract on the embedded controller as it is by default, on a file, with long transfers. */
class SimulatedControllerContractTest extends ControllerContract {
  private static final long SIZE = 64 << 20;

  @TempDir Path folder;
  private SimulatedController device;

  @Override
  PciFunction function() {
    device =
        SimulatedController.create(
            SimConfig.builder()
                .namespace(NamespaceConfig.file(folder.resolve("ns1"), SIZE, 512))
                .maxTransfer(8 << 20)
                .latencyNanos(10_000)
                .build());
    return device;
  }

  @Override
  List<Expected> expected() {
    return List.of(new Expected(1, 512, SIZE / 512));
  }

  @Override
  boolean mayFormat() {
    return true;
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
