package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.pci.PciFunction;
import java.util.List;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;

/**
 * The contract on a controller that somebody else wrote. {@code scripts/guest} runs it on QEMU's;
 * docs/qemu-differences.md has what differs from the embedded one. What is written stays, for
 * whoever compares the disk from outside afterwards.
 */
@Tag("qemu")
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class RealControllerContractTest extends ControllerContract {
  @Override
  PciFunction function() {
    return RealDevice.open();
  }

  @Override
  List<Expected> expected() {
    return RealDevice.namespaces();
  }

  /** Before all others: it clears what they write. */
  @Test
  @Order(1)
  @Override
  void formatChangesTheBlockSizeAndBack() {
    super.formatChangesTheBlockSizeAndBack();
  }

  @Override
  boolean mayFormat() {
    return true;
  }

  @Override
  ControllerOptions.Builder options() {
    return RealDevice.limit(super.options());
  }
}
