package io.gpunvme.gpu.accel;

import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import java.lang.foreign.MemorySegment;

/** A {@link DeviceBuffer} in host memory. */
abstract class HostBuffer extends DeviceBuffer {
  private final MemorySegment memory;

  /**
   * @param memory zeroed, its address and size multiples of 4096; no longer alive after {@link
   *     #free}
   */
  HostBuffer(MemorySegment memory) {
    this.memory = memory;
  }

  @Override
  public final long size() {
    return memory.byteSize();
  }

  @Override
  public final boolean isHost() {
    return true;
  }

  @Override
  public final MemorySegment segment() {
    return memory;
  }

  @Override
  protected final BusRange map(BusMapper controller) {
    return controller.map(memory);
  }

  @Override
  public final void copyToHost(long offset, MemorySegment target) {
    checkRange(offset, target.byteSize());
    MemorySegment.copy(memory, offset, target, 0, target.byteSize());
  }

  @Override
  public final void copyFromHost(MemorySegment source, long offset) {
    checkRange(offset, source.byteSize());
    MemorySegment.copy(source, 0, memory, offset, source.byteSize());
  }
}
