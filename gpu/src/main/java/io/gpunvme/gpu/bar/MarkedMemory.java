package io.gpunvme.gpu.bar;

import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.nvme.pci.PciAddress;

/**
 * Memory of a PCI function that can be found behind one of that function's BARs, for its owner can
 * mark it.
 */
public interface MarkedMemory extends RemoteMemory {
  /**
   * The function that it belongs to.
   *
   * @param address where it is
   * @param bytes of all its memory
   */
  record Owner(PciAddress address, long bytes) {}

  /** The function that it belongs to. */
  Owner owner();

  /** Where on its function's first page of 64 KiB it begins, a multiple of 4096. */
  long pageOffset();

  /** Begins to mark it. Nobody else may write to it until that is closed. */
  default PageMarks openMarks() {
    return new PortMarks(this);
  }
}
