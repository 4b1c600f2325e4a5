package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.memory.RemoteMemory;
import java.lang.foreign.MemorySegment;

/** Memory of another device that it shares as a dma-buf, with a mapping of the device's own. */
interface SharedBuffer extends RemoteMemory, AutoCloseable {
  /** All of the buffer, by the device's own mapping. */
  MemorySegment whole();

  /** The part of it that is shared, by the device's own mapping. */
  MemorySegment memory();

  @Override
  void close();
}
