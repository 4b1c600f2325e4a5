package io.gpunvme.gpu.accel;

import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.pci.NumaHome;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.function.BooleanSupplier;

/**
 * A device that works on the data, with memory of its own.
 *
 * <p>Safe for all threads. Closing it closes every buffer still allocated on it.
 */
public interface Accelerator extends AutoCloseable {
  /** The name, e.g. {@code CPU stand-in (host memory)}. */
  String name();

  /** Whether this is a GPU; false for the CPU stand-in. */
  boolean gpu();

  /** Its CUDA side, for what only CUDA has: streams, events, modules; empty without CUDA. */
  default Optional<GpuAccelerator> cuda() {
    return Optional.empty();
  }

  /**
   * The NUMA node that its pinned memory is placed on; {@link NumaHome#NONE} of the stand-in, which
   * has all nodes.
   */
  default NumaHome home() {
    return NumaHome.NONE;
  }

  /**
   * Allocates memory on this accelerator, zeroed, aligned to at least 4096 bytes.
   *
   * @param bytes &gt; 0; rounded up to a multiple of the page size
   */
  DeviceBuffer allocate(long bytes);

  /** The same without clearing: the contents are undefined until they are written. */
  default DeviceBuffer allocateUncleared(long bytes) {
    return allocate(bytes);
  }

  /**
   * Bytes that could be allocated now, if known; another user of the memory may take them first.
   */
  default long availableBytes() {
    return Long.MAX_VALUE;
  }

  /** The memory that is allocated on it now, including its own part. */
  MemoryInUse memoryInUse();

  /**
   * Allocates host memory that this accelerator can address too, zeroed, aligned to at least 4096
   * bytes. It is pinned, so copies from and to it are the fastest. A GPU's is on its {@link #home}
   * while that has some, unless the thread has another memory policy.
   *
   * @param bytes &gt; 0; rounded up to a multiple of the page size
   */
  DeviceBuffer allocatePinned(long bytes);

  /**
   * From now on, {@link #allocatePinned} returns memory that can be mapped for this controller too,
   * if the controller takes only certain memory.
   */
  default void servePinned(BusMapper controller) {}

  /**
   * Makes memory that others allocated in this process addressable for this accelerator.
   *
   * @param memory native; must outlive the window
   * @param kind the kind of memory
   * @throws io.gpunvme.nvme.DmaMappingException if this accelerator cannot address it; the message
   *     says why
   */
  HostWindow mapHost(MemorySegment memory, HostMemoryKind kind);

  /**
   * Makes a buffer of memory on this accelerator that others allocated.
   *
   * @param address as the accelerator has it: a {@code CUdeviceptr}; on the stand-in, an address in
   *     this process
   * @param bytes &gt; 0; any number, and the address may be any
   * @throws io.gpunvme.nvme.DmaMappingException if all or part of this is not memory of this
   *     accelerator; the message says what it is
   */
  default ForeignMemory foreign(long address, long bytes) {
    throw new io.gpunvme.nvme.DmaMappingException(
        name() + " cannot use memory that others allocated");
  }

  /** Copies between buffers of this accelerator. */
  BufferCopies copies();

  /**
   * Announces a kernel that waits for SSDs: memory that is freed while the kernel runs is freed
   * when the kernel is over. The initiators announce their kernels.
   *
   * @param over whether the kernel, once it is launched, is over. Asked by the calling thread only,
   *     if it takes memory meanwhile: then it cannot see to the end of its kernel by itself
   * @return to be closed when the kernel is over
   */
  default KernelRun kernelRun(BooleanSupplier over) {
    return () -> {};
  }

  /** The same for a kernel that has been launched already; never waits. */
  default KernelRun runningKernel() {
    return () -> {};
  }

  /**
   * Closes every buffer, and this.
   *
   * @throws IllegalStateException if transfers or kernels use buffers; once their storages are
   *     closed it can be closed again
   */
  @Override
  void close();
}
