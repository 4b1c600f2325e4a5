package io.gpunvme.nvme.pci.vfio;

import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PhysicalMemory;
import java.lang.foreign.MemorySegment;

/** Nothing translates: bus addresses are physical addresses. */
final class PhysicalDomain implements IommuDomain {
  private final PhysicalMemory physical;
  private volatile boolean closed;

  PhysicalDomain(HostPaths paths) {
    this.physical = new PhysicalMemory(paths);
  }

  @Override
  public String how() {
    return "no IOMMU: physical addresses";
  }

  @Override
  public int addressBits() {
    return Long.SIZE;
  }

  @Override
  public BusRange map(MemorySegment memory) {
    if (closed) {
      throw new DmaMappingException("the device is closed; nothing can be mapped any more");
    }
    return physical.map(memory);
  }

  @Override
  public void close() {
    closed = true;
  }
}
