package io.gpunvme.nvme.memory;

import io.gpunvme.base.DmaBuf;
import io.gpunvme.nvme.DmaMappingException;

/**
 * Memory that the CPU can neither load from nor store to, only copy to and from: a GPU's, usually.
 *
 * <p>Whoever owns the memory implements this; the simulated controller uses it as a real one uses
 * the bus. Safe for all threads. The memory must outlive its mappings and its ports.
 */
public interface RemoteMemory {
  /** Its name in messages, e.g. {@code GPU 0, 64 MiB at 7F0000000000h}. */
  String name();

  /** Size in bytes: a multiple of 4096 that never changes. */
  long size();

  /**
   * A controller is about to map it, and to open ports from threads of its own: what these need can
   * be made now. Called by the thread that maps it.
   */
  default void prepare() {}

  /**
   * A way to copy. Ports of one thread for one use may share what they copy with.
   *
   * @throws RuntimeException if there is none; the owner's own exception
   */
  RemotePort openPort(RemotePort.Use use);

  /**
   * Whether it may lie in the host's memory, seen from a controller. Drivers of GPUs have been seen
   * to move memory there before they share it; the GPU goes on with its own, and what a controller
   * writes never arrives. So by default it may not.
   */
  default boolean mayBeInHost() {
    return false;
  }

  /**
   * The memory for kernel drivers of other devices. It stays allocated until they release it, even
   * if the owner frees it.
   *
   * @return to be closed by the caller
   * @throws DmaMappingException if this memory cannot be exported; the message says why
   */
  default DmaBuf exportDmaBuf() {
    throw new DmaMappingException(name() + " cannot be exported as a dma-buf");
  }
}
