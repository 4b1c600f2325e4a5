package io.gpunvme.nvme.memory;

/**
 * Memory that the CPU can neither load from nor store to, only copy to and from: a GPU's, usually.
 *
 * <p>Whoever owns the memory implements this; the simulated controller uses it as a real one uses
 * the bus. Safe for all threads. The memory must outlive its mappings and its ports.
 */
public interface RemoteMemory {
  /** What it is, for messages, e.g. {@code GPU 0, 64 MiB at 7F0000000000h}. */
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
}
