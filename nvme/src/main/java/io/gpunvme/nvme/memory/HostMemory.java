package io.gpunvme.nvme.memory;

import io.gpunvme.ffi.SharedMemory;
import java.lang.foreign.MemorySegment;

/** Memory that a controller is to be given, and how it is freed. Safe for all threads. */
public final class HostMemory implements AutoCloseable {
  private final MemorySegment segment;
  private final Runnable free;

  /**
   * Owns memory.
   *
   * @param segment its lifetime ends when {@code free} has run
   * @param free may be called more than once
   */
  public HostMemory(MemorySegment segment, Runnable free) {
    this.segment = segment;
    this.free = free;
  }

  /**
   * Ordinary pages with a file descriptor, so other processes and CUDA can use them.
   *
   * @param bytes &gt; 0; rounded up to a multiple of the system's page size
   */
  public static HostMemory shared(long bytes) {
    SharedMemory memory = SharedMemory.allocate("gpunvme-dma", bytes);
    return new HostMemory(memory.segment(), memory::close);
  }

  /** The memory, page-aligned. */
  public MemorySegment segment() {
    return segment;
  }

  @Override
  public void close() {
    free.run();
  }
}
