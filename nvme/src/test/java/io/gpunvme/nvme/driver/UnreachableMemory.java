package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.testing.ForwardingFunction;
import java.lang.foreign.MemorySegment;

/** A function behind an IOMMU whose controller is told wrong addresses while {@link #wrong}. */
final class UnreachableMemory extends ForwardingFunction {
  /** Nothing is mapped there: above all memory of the machines that run this. */
  private static final long NOWHERE = 3L << 37;

  /** Whether what is mapped now is out of reach. */
  volatile boolean wrong;

  UnreachableMemory(PciFunction function, boolean wrong) {
    super(function);
    this.wrong = wrong;
  }

  @Override
  public BusRange map(MemorySegment memory) {
    BusRange range = super.map(memory);
    return wrong ? BusRange.contiguous(memory, NOWHERE, range::close) : range;
  }
}
