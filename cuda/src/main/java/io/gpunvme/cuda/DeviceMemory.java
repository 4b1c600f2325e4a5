package io.gpunvme.cuda;

import io.gpunvme.base.DmaBuf;
import io.gpunvme.ffi.Posix;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Memory of a GPU. Its bytes are undefined until written.
 *
 * <p>Safe for all threads. The copies and {@link #fill} return when they are complete; they run in
 * a stream of their own and are not ordered after work in other streams. Copies that overlap with
 * something else are {@link CudaStream}'s. Use after close throws {@link IllegalStateException};
 * that nothing on the GPU uses the memory any more is up to the caller.
 */
public final class DeviceMemory extends ContextResource {
  /** Of every allocation (CUDA C++ Programming Guide, device memory accesses). */
  private static final long DRIVERS_ALIGNMENT = 256;

  /** Allocations of at least this size begin with a page of the GPU. */
  private static final long DRIVERS_PAGE = 2 << 20;

  /** CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE. */
  private static final long OVER_PCIE = 1;

  /** What the driver gave; 0 if the memory is somebody else's. */
  private final long allocation;

  private final long address;
  private final long size;
  private final List<Runnable> beforeFree = new CopyOnWriteArrayList<>();

  private DeviceMemory(CudaContext context, long allocation, long address, long size) {
    super(context, size + " bytes of GPU memory at " + Driver.hex(address));
    this.allocation = allocation;
    this.address = address;
    this.size = size;
  }

  /** {@code alignment} is 0 for the driver's own, or a power of two. */
  static DeviceMemory allocate(CudaContext context, long bytes, long alignment) {
    long slack = Math.max(0, alignment - 1);
    boolean aligned = alignment >= 0 && (alignment & slack) == 0;
    if (bytes <= 0 || bytes > Long.MAX_VALUE - slack || !aligned) {
      throw new IllegalArgumentException(
          bytes + " bytes of GPU memory, aligned to " + alignment + " (must be a power of two)");
    }
    // Freeing waits for kernels: what the driver is known to align less is made larger at once.
    boolean small = alignment > DRIVERS_ALIGNMENT && bytes < DRIVERS_PAGE;
    long allocation = context.api().memory().allocate(small ? bytes + slack : bytes);
    if (!small && (allocation & slack) != 0) {
      context.api().memory().free(allocation);
      allocation = context.api().memory().allocate(bytes + slack);
    }
    return new DeviceMemory(context, allocation, (allocation + slack) & ~slack, bytes);
  }

  /** Memory that somebody else allocated, and frees. */
  static DeviceMemory foreign(CudaContext context, long address, long bytes) {
    if (address == 0 || bytes <= 0) {
      throw new IllegalArgumentException(bytes + " bytes of GPU memory at " + Driver.hex(address));
    }
    return new DeviceMemory(context, 0, address, bytes);
  }

  /**
   * Its address on the device, at least 256-byte aligned.
   *
   * @throws IllegalStateException if it is closed
   */
  public long address() {
    requireOpen();
    return address;
  }

  /** Size in bytes, as asked for. */
  public long size() {
    return size;
  }

  /**
   * Copies from host memory.
   *
   * @param source native memory, fastest if pinned or registered
   * @param offset into this memory, in bytes
   */
  public void copyFrom(MemorySegment source, long offset) {
    Objects.checkFromIndexSize(offset, source.byteSize(), size);
    begin();
    try {
      context()
          .transfers()
          .copy(source.byteSize(), s -> api().copies().toDevice(address + offset, source, s));
    } finally {
      end();
    }
  }

  /**
   * Copies to host memory.
   *
   * @param offset into this memory, in bytes
   * @param target native memory, fastest if pinned or registered
   */
  public void copyTo(long offset, MemorySegment target) {
    Objects.checkFromIndexSize(offset, target.byteSize(), size);
    CudaStream.requireWritable(target);
    begin();
    try {
      context()
          .transfers()
          .copy(target.byteSize(), s -> api().copies().toHost(target, address + offset, s));
    } finally {
      end();
    }
  }

  /**
   * Sets every byte. It may run as a kernel: while another kernel fills the GPU and waits for the
   * host, use {@link #copyFrom}.
   */
  public void fill(byte value) {
    begin();
    try {
      context().transfers().fill(s -> api().copies().fill(address, value, size, s));
    } finally {
      end();
    }
  }

  /**
   * Exports the memory for kernel drivers of other devices; whole pages of the host only. The
   * memory stays allocated until the dma-buf and the memory are both closed.
   *
   * @throws CudaException {@link CudaException#NOT_SUPPORTED} where {@link GpuDirect#dmaBuf} is
   *     false
   */
  public DmaBuf exportDmaBuf() {
    return exportDmaBuf(0);
  }

  /**
   * Like {@link #exportDmaBuf}, with addresses on PCIe also where the GPU has a coherent link to
   * the CPU; since CUDA 12.8.
   */
  public DmaBuf exportPcieDmaBuf() {
    return exportDmaBuf(OVER_PCIE);
  }

  private DmaBuf exportDmaBuf(long flags) {
    if ((address | size) % Posix.pageSize() != 0) {
      throw new IllegalStateException(
          size
              + " bytes of GPU memory at "
              + Driver.hex(address)
              + " are not whole pages of "
              + Posix.pageSize()
              + " bytes: allocate a multiple of them, aligned to them, to export it");
    }
    begin();
    try {
      return new DmaBuf(api().memory().dmaBuf(address, size, flags), 0, size);
    } finally {
      end();
    }
  }

  /**
   * Lets a library that has pinned the memory unpin it in time: its step runs after the last use of
   * the memory and before it is freed, in the thread that closes it.
   *
   * @param step may be run more than once. An exception from it keeps the memory open, because
   *     freeing memory that a kernel driver has pinned can hang that driver
   * @return to be closed when the step is not needed any more
   * @throws IllegalStateException if the memory is closed
   */
  public Hold beforeFree(Runnable step) {
    begin();
    try {
      beforeFree.add(step);
      return new Hold(() -> beforeFree.remove(step));
    } finally {
      end();
    }
  }

  @Override
  void revoke() {
    beforeFree.forEach(Runnable::run);
  }

  @Override
  long deviceBytes() {
    return allocation == 0 ? 0 : size;
  }

  @Override
  void free() {
    if (allocation != 0) {
      api().memory().free(allocation);
    }
  }
}
