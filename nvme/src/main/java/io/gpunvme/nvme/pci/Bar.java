package io.gpunvme.nvme.pci;

import java.lang.foreign.MemorySegment;

/**
 * One memory BAR of a PCI function.
 *
 * <p>Registers are read and written by 4- or 8-byte accesses with side effects, so they are calls:
 * a load or store on a mapped BAR, a message on vfio-user, a method on the simulated controller.
 * What a transport can map (doorbells always, a controller memory buffer if present) is plain
 * memory, where a store is the whole operation. Safe for all threads; accesses by one thread keep
 * their order.
 */
public interface Bar {
  /** Size in bytes. */
  long size();

  /** Reads 4 bytes at a 4-byte aligned offset; all ones once the device is gone. */
  int read32(long offset);

  /** Writes 4 bytes at a 4-byte aligned offset. */
  void write32(long offset, int value);

  /** Reads 8 bytes at an 8-byte aligned offset, as one access or as two halves (low first). */
  long read64(long offset);

  /**
   * Writes 8 bytes at an 8-byte aligned offset, as one access or as two halves (low first). A
   * register whose low half starts something (CMBMSC) is written by {@link #write32}, high half
   * first.
   */
  void write64(long offset, long value);

  /**
   * The directly mapped part of this BAR.
   *
   * @throws io.gpunvme.base.InvalidRequestException if the range is not mapped as memory
   */
  MemorySegment memory(long offset, long bytes);

  /**
   * The same registers as {@link #memory}, for an initiator other than this process's Java: a GPU,
   * or other native code that is given the address. A device that must tell its initiators apart
   * returns another window to the same doorbells; a store to either is the whole operation. Each
   * window is for one kind of initiator, and a queue for one initiator at a time.
   *
   * @throws io.gpunvme.base.InvalidRequestException if the range is not mapped as memory
   */
  default MemorySegment peerMemory(long offset, long bytes) {
    return memory(offset, bytes);
  }
}
