package io.gpunvme.storage.path.pinned;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.BufferCopies;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.HostMemoryKind;
import io.gpunvme.gpu.accel.HostWindow;
import io.gpunvme.gpu.accel.MemoryInUse;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicLong;

/**
 * An accelerator whose memory only copies reach, as a GPU's. Counts the pinned memory that is
 * allocated, and refuses it beyond a limit.
 */
final class RemoteAccelerator implements Accelerator {
  private final CpuAccelerator host = CpuAccelerator.open();
  private final AtomicLong pinned = new AtomicLong();
  private final long mostPinned;

  RemoteAccelerator() {
    this(Long.MAX_VALUE);
  }

  RemoteAccelerator(long mostPinned) {
    this.mostPinned = mostPinned;
  }

  long pinnedBytes() {
    return pinned.get();
  }

  @Override
  public String name() {
    return "a remote one";
  }

  @Override
  public boolean gpu() {
    return false;
  }

  @Override
  public DeviceBuffer allocate(long bytes) {
    return new Remote(host.allocate(bytes));
  }

  @Override
  public MemoryInUse memoryInUse() {
    return host.memoryInUse();
  }

  @Override
  public DeviceBuffer allocatePinned(long bytes) {
    if (pinned.addAndGet(bytes) > mostPinned) {
      pinned.addAndGet(-bytes);
      throw new io.gpunvme.ffi.PosixException("memfd", "test", io.gpunvme.ffi.Errno.ENOMEM);
    }
    return new Pinned(host.allocatePinned(bytes), bytes);
  }

  @Override
  public HostWindow mapHost(MemorySegment memory, HostMemoryKind kind) {
    return host.mapHost(memory, kind);
  }

  @Override
  public BufferCopies copies() {
    throw new UnsupportedOperationException("the path copies by itself");
  }

  @Override
  public void close() {
    host.close();
  }

  private abstract static class Wrapped extends DeviceBuffer {
    final DeviceBuffer inner;

    Wrapped(DeviceBuffer inner) {
      this.inner = inner;
    }

    @Override
    public long size() {
      return inner.size();
    }

    @Override
    public long deviceAddress() {
      return inner.deviceAddress();
    }

    @Override
    protected BusRange map(BusMapper controller) {
      throw new UnsupportedOperationException();
    }

    @Override
    public void copyToHost(long offset, MemorySegment target) {
      inner.copyToHost(offset, target);
    }

    @Override
    public void copyFromHost(MemorySegment source, long offset) {
      inner.copyFromHost(source, offset);
    }
  }

  private static final class Remote extends Wrapped {
    Remote(DeviceBuffer inner) {
      super(inner);
    }

    @Override
    public boolean isHost() {
      return false;
    }

    @Override
    public MemorySegment segment() {
      throw new IllegalStateException("remote memory");
    }

    @Override
    protected void free() {
      inner.close();
    }
  }

  private final class Pinned extends Wrapped {
    private final long bytes;

    Pinned(DeviceBuffer inner, long bytes) {
      super(inner);
      this.bytes = bytes;
    }

    @Override
    public boolean isHost() {
      return true;
    }

    @Override
    public MemorySegment segment() {
      return inner.segment();
    }

    @Override
    protected void free() {
      pinned.addAndGet(-bytes);
      inner.close();
    }
  }
}
