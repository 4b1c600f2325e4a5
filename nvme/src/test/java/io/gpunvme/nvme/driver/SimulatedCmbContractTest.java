package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.util.List;

/** On the embedded controller. */
class SimulatedCmbContractTest extends CmbContract {
  private static final long SIZE = 16 << 20;

  @Override
  PciFunction function() {
    return SimulatedController.create(
        SimConfig.builder().namespace(NamespaceConfig.ram(SIZE, 512)).cmbBytes(1 << 20).build());
  }

  @Override
  List<Expected> expected() {
    return List.of(new Expected(1, 512, SIZE / 512));
  }
}
