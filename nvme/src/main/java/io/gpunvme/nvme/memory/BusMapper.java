package io.gpunvme.nvme.memory;

import java.lang.foreign.MemorySegment;

/** Whatever makes memory reachable for one controller; every {@code PciFunction} is one. */
@FunctionalInterface
public interface BusMapper {
  /**
   * Maps memory for reading and writing by the controller until the range is closed.
   *
   * @param memory native memory, its address and size multiples of 4096 bytes
   * @return the range; closing it unmaps but never frees the memory
   * @throws io.gpunvme.nvme.DmaMappingException if the memory is misaligned, on the heap, or the
   *     system refuses (limits, IOMMU)
   */
  BusRange map(MemorySegment memory);
}
