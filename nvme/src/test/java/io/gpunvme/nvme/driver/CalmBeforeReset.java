package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.testing.ForwardingFunction;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/**
 * A function whose controller is not told to stop right after a doorbell: commands that QEMU's
 * controller begins while it stops end after their queue was freed, and QEMU crashes
 * (docs/qemu-differences.md).
 */
final class CalmBeforeReset extends ForwardingFunction {
  private static final long CALM_NANOS = Duration.ofMillis(20).toNanos();

  CalmBeforeReset(PciFunction function) {
    super(function);
  }

  @Override
  public Bar bar(int index) {
    return index == 0 ? new Registers0(super.bar(0)) : super.bar(index);
  }

  /** BAR0. */
  private record Registers0(Bar bar) implements Bar {
    @Override
    public void write32(long offset, int value) {
      if (offset == Registers.CC
          && !new Cc(value).isSet(Cc.EN)
          && new Cc(bar.read32(offset)).isSet(Cc.EN)) {
        LockSupport.parkNanos(CALM_NANOS);
      }
      bar.write32(offset, value);
    }

    @Override
    public long size() {
      return bar.size();
    }

    @Override
    public int read32(long offset) {
      return bar.read32(offset);
    }

    @Override
    public long read64(long offset) {
      return bar.read64(offset);
    }

    @Override
    public void write64(long offset, long value) {
      bar.write64(offset, value);
    }

    @Override
    public MemorySegment memory(long offset, long bytes) {
      return bar.memory(offset, bytes);
    }

    @Override
    public MemorySegment peerMemory(long offset, long bytes) {
      return bar.peerMemory(offset, bytes);
    }
  }
}
