package io.gpunvme.gpu.accel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.FreeMemory;
import io.gpunvme.ffi.MemoryBudget;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CpuAcceleratorTest {
  private final AtomicInteger mapped = new AtomicInteger();
  private final BusMapper mapper =
      memory -> {
        mapped.incrementAndGet();
        return BusRange.contiguous(memory, 0x10000, mapped::decrementAndGet);
      };

  @Test
  void dataGoesInAndOut() {
    try (CpuAccelerator cpu = CpuAccelerator.open();
        DeviceBuffer buffer = cpu.allocate(5000)) {
      assertThat(buffer.size()).isEqualTo(8192);
      buffer.copyFromHost(MemorySegment.ofArray(new byte[] {1, 2, 3}), 8189);
      byte[] out = new byte[4];
      buffer.copyToHost(8188, MemorySegment.ofArray(out));
      assertThat(out).containsExactly(0, 1, 2, 3);
      assertThat(cpu.gpu()).isFalse();
      assertThat(cpu.name()).contains("CPU");
    }
  }

  @Test
  void whatIsAllocatedIsCounted() {
    try (CpuAccelerator cpu = CpuAccelerator.open();
        DeviceBuffer buffer = cpu.allocate(4096)) {
      DeviceBuffer other = cpu.allocatePinned(5000);
      assertThat(cpu.memoryInUse()).isEqualTo(new MemoryInUse(buffer.size() + 8192, 0));
      other.close();
      assertThat(cpu.memoryInUse()).isEqualTo(new MemoryInUse(4096, 0));
    }
  }

  @Test
  void rangesOutsideAreRefused() {
    try (CpuAccelerator cpu = CpuAccelerator.open();
        DeviceBuffer buffer = cpu.allocate(4096)) {
      MemorySegment four = MemorySegment.ofArray(new byte[4]);
      assertThatThrownBy(() -> buffer.copyToHost(4093, four))
          .isInstanceOf(InvalidRequestException.class);
      assertThatThrownBy(() -> buffer.copyFromHost(four, -1))
          .isInstanceOf(InvalidRequestException.class);
      assertThatThrownBy(() -> buffer.copyFromHost(four, Long.MAX_VALUE))
          .isInstanceOf(InvalidRequestException.class);
    }
  }

  @Test
  void aBufferIsMappedOncePerControllerAndUnmappedBeforeItIsFreed() {
    try (CpuAccelerator cpu = CpuAccelerator.open()) {
      DeviceBuffer buffer = cpu.allocate(4096);
      BusRange first = buffer.mapFor(mapper);
      assertThat(buffer.mapFor(mapper)).isSameAs(first);
      assertThat(mapped).hasValue(1);
      buffer.close();
      buffer.close();
      assertThat(mapped).hasValue(0);
      assertThatThrownBy(() -> buffer.mapFor(mapper)).isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> buffer.copyToHost(0, MemorySegment.ofArray(new byte[1])))
          .isInstanceOf(IllegalStateException.class);
    }
  }

  @Test
  void aFailedMappingLeavesTheBufferUsable() {
    try (CpuAccelerator cpu = CpuAccelerator.open();
        DeviceBuffer buffer = cpu.allocate(4096)) {
      assertThatThrownBy(
              () ->
                  buffer.mapFor(
                      m -> {
                        throw new DmaMappingException("no room");
                      }))
          .isInstanceOf(DmaMappingException.class);
      assertThat(buffer.mapFor(mapper).size()).isEqualTo(4096);
    }
  }

  @Test
  void closingTheAcceleratorClosesItsBuffers() {
    CpuAccelerator cpu = CpuAccelerator.open();
    DeviceBuffer a = cpu.allocate(4096);
    a.mapFor(mapper);
    cpu.allocate(4096);
    cpu.close();
    assertThat(mapped).hasValue(0);
    assertThatThrownBy(() -> a.copyToHost(0, MemorySegment.ofArray(new byte[1])))
        .isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> cpu.allocate(1)).isInstanceOf(IllegalStateException.class);
  }

  /** A made-up machine with 512 MiB free. Nothing is taken of what is refused. */
  @Test
  void moreThanMayBeHadIsRefused(@TempDir Path folder) throws IOException {
    Files.writeString(folder.resolve("meminfo"), "MemAvailable: %d kB\n".formatted(512 << 10));
    try (CpuAccelerator cpu =
        CpuAccelerator.over(new MemoryBudget(new FreeMemory(folder, folder)))) {
      assertThat(cpu.availableBytes()).isEqualTo(448L << 20);
      cpu.allocate(2 << 20).close();
      for (long bytes : new long[] {(448L << 20) + 1, 1L << 36, 1L << 45, Long.MAX_VALUE}) {
        for (Consumer<Long> take : List.<Consumer<Long>>of(cpu::allocate, cpu::allocatePinned)) {
          assertThatExceptionOfType(PosixException.class)
              .isThrownBy(() -> take.accept(bytes))
              .withMessageContaining(bytes + " bytes of host memory, of which 469762048 may be had")
              .satisfies(e -> assertThat(e.errno()).isEqualTo(Errno.ENOMEM));
        }
      }
      assertThat(cpu.memoryInUse().device()).isZero();
    }
  }
}
