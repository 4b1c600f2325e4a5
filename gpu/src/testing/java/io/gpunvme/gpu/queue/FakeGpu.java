package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.BufferCopies;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.HostMemoryKind;
import io.gpunvme.gpu.accel.HostWindow;
import io.gpunvme.gpu.accel.KernelRun;
import io.gpunvme.gpu.accel.MemoryInUse;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.nvme.memory.RemotePort;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;

/**
 * An accelerator whose memory is the host's but says that it is not: controllers get to reach it by
 * copies only, kernels compiled for the CPU by address.
 */
public final class FakeGpu implements Accelerator {
  private final CpuAccelerator cpu = CpuAccelerator.open();
  private final AtomicInteger kernels = new AtomicInteger();
  private final List<DeviceBuffer> memory = new CopyOnWriteArrayList<>();

  @Override
  public String name() {
    return "fake GPU";
  }

  @Override
  public boolean gpu() {
    return true;
  }

  @Override
  public DeviceBuffer allocate(long bytes) {
    DeviceBuffer made = new FakeBuffer(cpu.allocate(bytes));
    memory.add(made);
    return made;
  }

  /** Whether an address is in its own memory, not in the host's; freed memory is not forgotten. */
  boolean owns(long address) {
    return memory.stream()
        .anyMatch(b -> address >= b.deviceAddress() && address < b.deviceAddress() + b.size());
  }

  @Override
  public MemoryInUse memoryInUse() {
    return cpu.memoryInUse();
  }

  @Override
  public DeviceBuffer allocatePinned(long bytes) {
    return cpu.allocatePinned(bytes);
  }

  @Override
  public HostWindow mapHost(MemorySegment memory, HostMemoryKind kind) {
    return cpu.mapHost(memory, kind);
  }

  @Override
  public BufferCopies copies() {
    return new Copies();
  }

  /** Kernels that it was told of and that are not over. */
  int kernels() {
    return kernels.get();
  }

  @Override
  public KernelRun kernelRun(BooleanSupplier over) {
    return runningKernel();
  }

  @Override
  public KernelRun runningKernel() {
    kernels.incrementAndGet();
    return kernels::decrementAndGet;
  }

  @Override
  public void close() {
    cpu.close();
  }

  private static MemorySegment memory(DeviceBuffer buffer) {
    return buffer instanceof FakeBuffer fake ? fake.memory.segment() : buffer.segment();
  }

  /** Does nothing before it is told to: whoever forgets to wait finds old data. */
  private static final class Copies implements BufferCopies {
    private final List<Runnable> added = new ArrayList<>();
    private final List<Runnable> started = new ArrayList<>();

    @Override
    public void add(DeviceBuffer source, long from, DeviceBuffer target, long to, long bytes) {
      added.add(() -> MemorySegment.copy(memory(source), from, memory(target), to, bytes));
    }

    @Override
    public void start() {
      started.addAll(added);
      added.clear();
    }

    @Override
    public void await() {
      start();
      started.forEach(Runnable::run);
      started.clear();
    }

    @Override
    public void close() {
      await();
    }
  }

  private static final class FakeBuffer extends DeviceBuffer {
    private final DeviceBuffer memory;

    FakeBuffer(DeviceBuffer memory) {
      this.memory = memory;
    }

    @Override
    public long size() {
      return memory.size();
    }

    @Override
    public boolean isHost() {
      return false;
    }

    @Override
    public MemorySegment segment() {
      throw new IllegalStateException("not host memory");
    }

    @Override
    public long deviceAddress() {
      return memory.deviceAddress();
    }

    @Override
    protected BusRange map(BusMapper controller) {
      return controller.map(new Remote(memory.segment()));
    }

    @Override
    public void copyToHost(long offset, MemorySegment target) {
      memory.copyToHost(offset, target);
    }

    @Override
    public void copyFromHost(MemorySegment source, long offset) {
      memory.copyFromHost(source, offset);
    }

    @Override
    protected void free() {
      memory.close();
    }
  }

  private record Remote(MemorySegment memory) implements RemoteMemory {
    @Override
    public String name() {
      return "memory of a fake GPU";
    }

    @Override
    public long size() {
      return memory.byteSize();
    }

    @Override
    public RemotePort openPort(RemotePort.Use use) {
      return new Port(memory);
    }
  }

  /** Copies at once, but says so only when asked a second time. */
  private static final class Port implements RemotePort {
    private final MemorySegment memory;
    private final Arena arena = Arena.ofShared();
    private long started;
    private long asked;

    Port(MemorySegment memory) {
      this.memory = memory;
    }

    @Override
    public void read(long offset, MemorySegment to) {
      to.copyFrom(memory.asSlice(offset, to.byteSize()));
    }

    @Override
    public void write(long offset, MemorySegment from) {
      memory.asSlice(offset, from.byteSize()).copyFrom(from);
    }

    @Override
    public long startRead(long offset, MemorySegment to) {
      read(offset, to);
      return ++started;
    }

    @Override
    public long startWrite(long offset, MemorySegment from) {
      write(offset, from);
      return ++started;
    }

    @Override
    public boolean isDone(long ticket) {
      boolean done = ticket <= asked;
      asked = Math.max(asked, ticket);
      return done;
    }

    @Override
    public MemorySegment bounce(long bytes) {
      return arena.allocate(bytes, 64);
    }

    @Override
    public void close() {
      if (arena.scope().isAlive()) {
        arena.close();
      }
    }
  }
}
