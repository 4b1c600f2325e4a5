package io.gpunvme.nvme.memory;

import java.lang.foreign.MemorySegment;

/**
 * Part of another PCI function's memory BAR: of a GPU's, usually. It has no pages to pin before a
 * controller uses it; the BAR must keep its address as long as a controller has it.
 *
 * @param memory as this process has it mapped from the function's file; its address and size
 *     multiples of 4096 bytes
 * @param physical the physical address of its first byte, a multiple of 4096
 */
public record PeerMemory(MemorySegment memory, long physical) {
  /** Bytes. */
  public long size() {
    return memory.byteSize();
  }
}
