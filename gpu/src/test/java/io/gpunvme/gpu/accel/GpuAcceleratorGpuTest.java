package io.gpunvme.gpu.accel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.base.DmaBuf;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.nvme.memory.RemotePort;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Tag("gpu")
@Timeout(60)
class GpuAcceleratorGpuTest {
  private final GpuAccelerator gpu = TestGpu.open();

  @AfterEach
  void close() {
    gpu.close();
  }

  @Test
  void bothKindsOfMemoryAreZeroedAlignedAndKeepData() {
    for (DeviceBuffer buffer : new DeviceBuffer[] {gpu.allocate(5000), gpu.allocatePinned(5000)}) {
      assertThat(buffer.size()).isEqualTo(8192);
      assertThat(buffer.deviceAddress() % 4096).isZero();
      byte[] out = new byte[8192];
      buffer.copyToHost(0, MemorySegment.ofArray(out));
      assertThat(out).containsOnly(0);
      buffer.copyFromHost(MemorySegment.ofArray(new byte[] {1, 2, 3}), 8189);
      byte[] end = new byte[4];
      buffer.copyToHost(8188, MemorySegment.ofArray(end));
      assertThat(end).containsExactly(0, 1, 2, 3);
      assertThatThrownBy(() -> buffer.copyToHost(8190, MemorySegment.ofArray(end)))
          .isInstanceOf(InvalidRequestException.class);
      buffer.close();
      buffer.close();
      assertThatThrownBy(() -> buffer.copyToHost(0, MemorySegment.ofArray(end)))
          .isInstanceOf(IllegalStateException.class);
    }
  }

  @Test
  void whatIsAllocatedIsCounted() {
    MemoryInUse before = gpu.memoryInUse();
    DeviceBuffer buffer = gpu.allocate(5000);
    DeviceBuffer pinned = gpu.allocatePinned(1 << 20);
    MemoryInUse after = gpu.memoryInUse();
    assertThat(after.device() - before.device()).isEqualTo(8192);
    assertThat(after.pinned() - before.pinned()).isBetween(1L << 20, (1L << 20) + 4096);
    buffer.close();
    pinned.close();
    assertThat(gpu.memoryInUse()).isEqualTo(before);
  }

  @Test
  void controllersAreGivenABufferAsADmaBuf() {
    assumeTrue(gpu.context().device().gpuDirect().dmaBuf(), "this GPU exports no dma-bufs");
    List<Long> sizes = new ArrayList<>();
    BusMapper kernelDriver =
        new BusMapper() {
          @Override
          public BusRange map(MemorySegment memory) {
            throw new AssertionError("host memory");
          }

          @Override
          public BusRange map(RemoteMemory memory) {
            try (DmaBuf exported = memory.exportDmaBuf()) {
              assertThat(exported.offset()).isZero();
              assertThat(Posix.size(exported.fd())).isEqualTo(exported.size());
              sizes.add(exported.size());
            }
            return BusRange.remote(memory.size(), 1 << 20, () -> {});
          }
        };
    for (long bytes : new long[] {1, 4097, 64 << 10, (2 << 20) + 1}) {
      try (DeviceBuffer buffer = gpu.allocate(bytes)) {
        assertThat(buffer.mapFor(kernelDriver).size()).isEqualTo(buffer.size());
      }
    }
    assertThat(sizes).containsExactly(4096L, 8192L, 64L << 10, (2L << 20) + 4096);
    try (DeviceBuffer pinned = gpu.allocatePinned(4096)) {
      assertThatThrownBy(() -> pinned.mapFor(kernelDriver)).hasMessage("host memory");
    }
  }

  @Test
  void onlyHostMemoryHasASegment() {
    assertThat(gpu.allocatePinned(1).segment().byteSize()).isEqualTo(4096);
    assertThatThrownBy(() -> gpu.allocate(1).segment()).isInstanceOf(IllegalStateException.class);
    assertThat(gpu.allocate(1).isHost()).isFalse();
  }

  @Test
  void longCopiesOfArraysGoThroughPinnedMemory() {
    byte[] data = new byte[(3 << 20) + 17];
    new SplittableRandom(3).nextBytes(data);
    DeviceBuffer buffer = gpu.allocate(data.length);
    buffer.copyFromHost(MemorySegment.ofArray(data), 0);
    byte[] back = new byte[data.length];
    buffer.copyToHost(0, MemorySegment.ofArray(back));
    assertThat(back).isEqualTo(data);
  }

  @Test
  void memoryOfOthersIsMappedOnceForAllWhoAsk() {
    try (SharedMemory memory = SharedMemory.allocate("test", 8192)) {
      HostWindow first = gpu.mapHost(memory.segment(), HostMemoryKind.MEMORY);
      HostWindow second = gpu.mapHost(memory.segment(), HostMemoryKind.MEMORY);
      assertThat(second.deviceAddress()).isEqualTo(first.deviceAddress());
      first.close();
      first.close();
      assertThat(second.deviceAddress()).isNotZero();
      second.close();
      gpu.mapHost(memory.segment(), HostMemoryKind.MEMORY).close();
    }
  }

  /** A controller's view: copies in order, each told when it is over. */
  @Test
  void portsCopyBothWays() {
    DeviceBuffer buffer = gpu.allocate(1 << 20);
    try (RemotePort port = remote(buffer).openPort(RemotePort.Use.DATA);
        Arena arena = Arena.ofConfined()) {
      MemorySegment bounce = port.bounce(4096);
      bounce.fill((byte) 9);
      port.write(4096, bounce);
      MemorySegment back = arena.allocate(8192);
      port.read(0, back);
      assertThat(back.asSlice(4096).mismatch(bounce)).isEqualTo(-1);
      long last = 0;
      for (int i = 0; i < 200; i++) {
        long ticket = port.startWrite((i % 256) * 4096L, bounce);
        assertThat(ticket).isGreaterThan(last);
        last = ticket;
      }
      while (!port.isDone(last)) {
        Thread.onSpinWait();
      }
      assertThat(port.isDone(1)).isTrue();
      assertThatThrownBy(() -> port.read((1 << 20) - 4096, back))
          .isInstanceOf(IndexOutOfBoundsException.class);
    }
  }

  private static RemoteMemory remote(DeviceBuffer buffer) {
    AtomicReference<RemoteMemory> seen = new AtomicReference<>();
    BusMapper mapper =
        new BusMapper() {
          @Override
          public BusRange map(MemorySegment memory) {
            throw new AssertionError("host memory");
          }

          @Override
          public BusRange map(RemoteMemory memory) {
            seen.set(memory);
            return BusRange.remote(memory.size(), 0x10000, () -> {});
          }
        };
    buffer.mapFor(mapper);
    return seen.get();
  }

  @Test
  void closingInAnyOrderIsSafe() {
    DeviceBuffer buffer = gpu.allocate(4096);
    DeviceBuffer pinned = gpu.allocatePinned(4096);
    RemotePort port = remote(buffer).openPort(RemotePort.Use.DATA);
    port.bounce(4096);
    gpu.close();
    port.close();
    buffer.close();
    pinned.close();
    gpu.close();
    assertThatThrownBy(() -> gpu.allocate(1)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> pinned.segment().get(java.lang.foreign.ValueLayout.JAVA_BYTE, 0))
        .isInstanceOf(IllegalStateException.class);
  }
}
