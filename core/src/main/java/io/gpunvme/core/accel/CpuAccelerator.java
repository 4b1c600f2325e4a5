package io.gpunvme.core.accel;

import io.gpunvme.ffi.SharedMemory;
import java.lang.foreign.MemorySegment;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The stand-in where there is no GPU: the same calls, the memory is the host's. */
public final class CpuAccelerator implements Accelerator {
  private final Set<CpuBuffer> buffers = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  private CpuAccelerator() {}

  /** Always succeeds. */
  public static CpuAccelerator open() {
    return new CpuAccelerator();
  }

  @Override
  public String name() {
    return "CPU stand-in (host memory)";
  }

  @Override
  public boolean gpu() {
    return false;
  }

  @Override
  public DeviceBuffer allocate(long bytes) {
    if (closed) {
      throw new IllegalStateException("this accelerator is closed");
    }
    CpuBuffer buffer = new CpuBuffer(SharedMemory.allocate("gpunvme-buffer", bytes));
    buffers.add(buffer);
    return buffer;
  }

  @Override
  public void close() {
    closed = true;
    buffers.forEach(CpuBuffer::close);
  }

  private final class CpuBuffer extends DeviceBuffer {
    private final SharedMemory memory;

    CpuBuffer(SharedMemory memory) {
      this.memory = memory;
    }

    @Override
    protected MemorySegment segment() {
      return memory.segment();
    }

    @Override
    public void copyToHost(long offset, MemorySegment target) {
      checkRange(offset, target.byteSize());
      MemorySegment.copy(segment(), offset, target, 0, target.byteSize());
    }

    @Override
    public void copyFromHost(MemorySegment source, long offset) {
      checkRange(offset, source.byteSize());
      MemorySegment.copy(source, 0, segment(), offset, source.byteSize());
    }

    @Override
    protected void free() {
      buffers.remove(this);
      memory.close();
    }
  }
}
