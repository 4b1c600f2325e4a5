package io.gpunvme.nvme.pci.vfio;

import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.PeerMemory;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** What translates the bus addresses of one function. Safe for all threads. */
interface IommuDomain extends AutoCloseable {
  /** What it is, in words. */
  String how();

  /** Bits of the highest bus address. */
  int addressBits();

  /**
   * Maps checked memory; {@link BusRange#close} unmaps.
   *
   * @throws io.gpunvme.nvme.DmaMappingException if the system refuses
   */
  BusRange map(MemorySegment memory);

  /**
   * Maps parts of another function's BAR, one after the other; {@link BusRange#close} unmaps.
   *
   * @throws io.gpunvme.nvme.DmaMappingException if the system refuses; nothing is mapped then
   */
  BusRange mapPeer(List<PeerMemory> parts);

  /** Unmaps whatever is mapped and lets go. Idempotent. */
  @Override
  void close();
}
