package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.pci.vfiouser.VfioUserOptions;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** The contract over a socket to the embedded controller in this process. */
class VfioUserContractTest extends ControllerContract {
  private static final long SIZE = 64 << 20;

  @TempDir static Path sockets;

  private ServedController served;

  @Override
  @BeforeEach
  void open() {
    served =
        ServedController.here(
            sockets.resolve("ssd"),
            SimConfig.builder()
                .namespace(NamespaceConfig.ram(SIZE, 512))
                .maxTransfer(8 << 20)
                .latencyNanos(10_000)
                .build());
    super.open();
  }

  VfioUserOptions transport() {
    return VfioUserOptions.defaults();
  }

  @Override
  PciFunction function() {
    return served.connect(transport());
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
    SimulatedController device = served.controller();
    served.close();
    assertThat(device.internalError()).isNull();
    assertThat(device.stats().dmaRefusals()).isZero();
    assertThat(device.stats().duplicateCids()).isZero();
  }
}
