package io.gpunvme.gpu.accel;

import io.gpunvme.ffi.AddressSpace;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.MemoryBudget;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.nvme.DmaMappingException;
import java.lang.foreign.MemorySegment;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The stand-in for a machine without a GPU: the same calls, with host memory. It has as much as the
 * machine and the process's control groups can spare; more is refused, before the kernel would end
 * a process without a word.
 */
public final class CpuAccelerator implements Accelerator {
  private static final long PAGE = 4096;

  private final Set<CpuBuffer> buffers = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  private final MemoryBudget budget;

  private CpuAccelerator(MemoryBudget budget) {
    this.budget = budget;
  }

  /** Always succeeds. */
  public static CpuAccelerator open() {
    return over(MemoryBudget.here());
  }

  /** Whose memory comes out of that budget. */
  static CpuAccelerator over(MemoryBudget budget) {
    return new CpuAccelerator(budget);
  }

  @Override
  public String name() {
    return "CPU stand-in (host memory)";
  }

  @Override
  public boolean gpu() {
    return false;
  }

  /** What may be taken without another process, or this one, being ended for it. */
  @Override
  public long availableBytes() {
    return budget.available();
  }

  /**
   * {@inheritDoc}
   *
   * @throws PosixException with {@link Errno#ENOMEM} if the machine cannot spare that much
   */
  @Override
  public DeviceBuffer allocate(long bytes) {
    requireOpen();
    CpuBuffer buffer = new CpuBuffer(SharedMemory.allocate("gpunvme-buffer", bytes, budget));
    buffers.add(buffer);
    return buffer;
  }

  @Override
  public MemoryInUse memoryInUse() {
    return new MemoryInUse(buffers.stream().mapToLong(DeviceBuffer::size).sum(), 0);
  }

  /** The same as {@link #allocate}: all of its memory is the host's. */
  @Override
  public DeviceBuffer allocatePinned(long bytes) {
    return allocate(bytes);
  }

  @Override
  public HostWindow mapHost(MemorySegment memory, HostMemoryKind kind) {
    requireOpen();
    return new OpenWindow(memory.address());
  }

  @Override
  public ForeignMemory foreign(long address, long bytes) {
    requireOpen();
    if (address == 0 || bytes <= 0 || bytes > Long.MAX_VALUE - 2 * PAGE) {
      throw new DmaMappingException(bytes + " bytes of memory at address " + address);
    }
    long start = address & -PAGE;
    long size = Math.ceilDiv(address + bytes - start, PAGE) * PAGE;
    ForeignBuffer buffer = new ForeignBuffer(AddressSpace.at(start, size));
    return new ForeignMemory(buffer, address - start);
  }

  /** Memory of this process that somebody else frees. */
  private static final class ForeignBuffer extends HostBuffer {
    ForeignBuffer(MemorySegment memory) {
      super(memory);
    }

    @Override
    public long deviceAddress() {
      return segment().address();
    }

    @Override
    protected void free() {}
  }

  @Override
  public BufferCopies copies() {
    requireOpen();
    return new HostCopies();
  }

  /** The CPU addresses everything anyway. */
  private record OpenWindow(long deviceAddress) implements HostWindow {
    @Override
    public void close() {}
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("this accelerator is closed");
    }
  }

  @Override
  public void close() {
    closed = true;
    DeviceBuffer.closeAll(buffers);
  }

  private final class CpuBuffer extends HostBuffer {
    private final SharedMemory memory;

    CpuBuffer(SharedMemory memory) {
      super(memory.segment());
      this.memory = memory;
    }

    @Override
    public long deviceAddress() {
      return segment().address();
    }

    @Override
    protected void free() {
      buffers.remove(this);
      memory.close();
    }
  }
}
