package io.gpunvme.gpu.accel;

import io.gpunvme.ffi.NumaCalls;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * The stand-in, which writes down for each piece of pinned memory whether the thread that allocated
 * it had a memory policy.
 */
public final class PolicyAccelerator implements Accelerator {
  private final CpuAccelerator cpu = CpuAccelerator.open();
  private final List<Boolean> placed = new CopyOnWriteArrayList<>();

  /** One for each piece so far. */
  public List<Boolean> placed() {
    return List.copyOf(placed);
  }

  @Override
  public DeviceBuffer allocatePinned(long bytes) {
    placed.add(!NumaCalls.hasUsualMemory());
    return cpu.allocatePinned(bytes);
  }

  @Override
  public String name() {
    return cpu.name();
  }

  @Override
  public boolean gpu() {
    return cpu.gpu();
  }

  @Override
  public DeviceBuffer allocate(long bytes) {
    return cpu.allocate(bytes);
  }

  @Override
  public MemoryInUse memoryInUse() {
    return cpu.memoryInUse();
  }

  @Override
  public HostWindow mapHost(MemorySegment memory, HostMemoryKind kind) {
    return cpu.mapHost(memory, kind);
  }

  @Override
  public BufferCopies copies() {
    return cpu.copies();
  }

  @Override
  public void close() {
    cpu.close();
  }
}
