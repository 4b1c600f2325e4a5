package io.gpunvme.gpu.accel;

import io.gpunvme.nvme.memory.BusMapper;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/**
 * A device that works on the data, with memory of its own.
 *
 * <p>Safe for all threads. Closing it closes every buffer still allocated on it.
 */
public interface Accelerator extends AutoCloseable {
  /** What it is, e.g. {@code CPU stand-in (host memory)}. */
  String name();

  /** Whether this is a GPU; false for the CPU stand-in. */
  boolean gpu();

  /** Its CUDA side, for what only CUDA has: streams, events, modules; empty without CUDA. */
  default Optional<GpuAccelerator> cuda() {
    return Optional.empty();
  }

  /**
   * Allocates memory on this accelerator, zeroed, aligned to at least 4096 bytes.
   *
   * @param bytes &gt; 0; rounded up to a multiple of the page size
   */
  DeviceBuffer allocate(long bytes);

  /** The same with any contents, for who writes over all of it that is looked at. */
  default DeviceBuffer allocateUncleared(long bytes) {
    return allocate(bytes);
  }

  /** Bytes that could be allocated now, as far as that is known; others may be faster. */
  default long availableBytes() {
    return Long.MAX_VALUE;
  }

  /** What is allocated on it now, its own part included. */
  MemoryInUse memoryInUse();

  /**
   * Allocates host memory that this accelerator addresses too, zeroed, aligned to at least 4096
   * bytes. It stays where it is, and copies from and to it are the fastest.
   *
   * @param bytes &gt; 0; rounded up to a multiple of the page size
   */
  DeviceBuffer allocatePinned(long bytes);

  /**
   * From now on {@link #allocatePinned} gives memory that can be mapped for this controller too, if
   * it is one that can only be given certain memory.
   */
  default void servePinned(BusMapper controller) {}

  /**
   * Makes memory of somebody else in this process addressable for this accelerator.
   *
   * @param memory native; must outlive the window
   * @param kind what it is
   * @throws io.gpunvme.nvme.DmaMappingException if this accelerator cannot be given it; the message
   *     says why
   */
  HostWindow mapHost(MemorySegment memory, HostMemoryKind kind);

  /**
   * Makes memory of this accelerator that somebody else allocated one of its buffers.
   *
   * @param address as the accelerator has it: a {@code CUdeviceptr}; on the stand-in, an address in
   *     this process
   * @param bytes &gt; 0; any number, as the address may be any
   * @throws io.gpunvme.nvme.DmaMappingException if this is not memory of this accelerator, or not
   *     all of it; the message says what it is
   */
  default ForeignMemory foreign(long address, long bytes) {
    throw new io.gpunvme.nvme.DmaMappingException(
        name() + " cannot use memory that others allocated");
  }

  /** Copies between buffers of this accelerator. */
  BufferCopies copies();

  /**
   * To be told of kernels that wait for SSDs: memory that is freed while one runs is freed when it
   * is over. The initiators tell of theirs.
   *
   * @return closed when the kernel is over
   */
  default KernelRun kernelRun() {
    return () -> {};
  }

  /** The same for a kernel that has been launched already; never waits. */
  default KernelRun runningKernel() {
    return kernelRun();
  }

  @Override
  void close();
}
