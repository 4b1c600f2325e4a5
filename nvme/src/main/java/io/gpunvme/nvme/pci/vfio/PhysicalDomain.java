package io.gpunvme.nvme.pci.vfio;

import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.PeerMemory;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.host.PhysicalMemory;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** Nothing translates: bus addresses are physical addresses. */
final class PhysicalDomain implements IommuDomain {
  private final PhysicalMemory physical;

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
    return physical.map(memory);
  }

  @Override
  public BusRange mapPeer(List<PeerMemory> parts) {
    return PhysicalMemory.peer(parts);
  }

  @Override
  public void close() {
    physical.close();
  }
}
