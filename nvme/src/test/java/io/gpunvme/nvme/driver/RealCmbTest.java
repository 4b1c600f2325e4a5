package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.pci.PciFunction;
import java.util.List;
import org.junit.jupiter.api.Tag;

/** On a controller that somebody else wrote. */
@Tag("qemu")
class RealCmbTest extends CmbContract {
  @Override
  PciFunction function() {
    return RealDevice.open();
  }

  @Override
  List<Expected> expected() {
    return RealDevice.namespaces();
  }
}
