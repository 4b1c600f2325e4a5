package io.gpunvme.gpu.accel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.cuda.Cuda;
import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.nvme.DmaMappingException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Several accelerators in one process: on two GPUs, and two on one. */
@Timeout(60)
class SeveralGpusTest {
  private final FakeDriver fake = FakeDriver.fresh("-DFAKE_DEVICES=2", "-DFAKE_INTERIOR=1");
  private final Cuda cuda = fake.load();
  private final GpuAccelerator first = GpuAccelerator.open(cuda.device(0));
  private final GpuAccelerator second = GpuAccelerator.open(cuda.device(1));
  private final GpuAccelerator firstAgain = GpuAccelerator.open(cuda.device(0));
  private final List<GpuAccelerator> all = List.of(first, second, firstAgain);

  /** What each has before anything is asked of it. */
  private final long own = first.memoryInUse().pinned();

  @AfterEach
  void nothingIsLeft() {
    all.forEach(GpuAccelerator::close);
    fake.assertClean("closing the accelerators");
  }

  @Test
  void eachHasMemoryOfItsOwnGpu() {
    for (GpuAccelerator gpu : all) {
      DeviceBuffer buffer = gpu.allocate(4096);
      assertThat(gpu.context().pointerInfo(buffer.deviceAddress()).device())
          .isEqualTo(gpu.context().device().ordinal());
      buffer.copyFromHost(MemorySegment.ofArray(new byte[] {1, 2, 3}), 8);
      byte[] read = new byte[3];
      buffer.copyToHost(8, MemorySegment.ofArray(read));
      assertThat(read).containsExactly(1, 2, 3);
      gpu.allocatePinned(4096);
      assertThat(gpu.memoryInUse().pinned()).isPositive();
    }
  }

  @Test
  void memoryOfAnotherGpuIsRefusedWithBothNamed() {
    DeviceBuffer there = second.allocate(4096);
    assertThatThrownBy(() -> first.foreign(there.deviceAddress(), 4096))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("is memory of device 1, and this is device 0");
  }

  @Test
  void allOfThemPinTheSameMemoryOnce() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment bar = arena.allocate(16384, 4096);
      MemorySegment doorbells = bar.asSlice(0, 8192);
      List<HostWindow> windows =
          all.stream().map(gpu -> gpu.mapHost(doorbells, HostMemoryKind.REGISTERS)).toList();
      HostWindow more = second.mapHost(doorbells.asSlice(0, 4096), HostMemoryKind.REGISTERS);
      assertThat(fake.calls("cuMemHostRegister_v2")).isEqualTo(1);
      assertThat(windows).allMatch(w -> w.deviceAddress() == windows.getFirst().deviceAddress());
      // Each counts it as its own.
      assertThat(all).allMatch(gpu -> gpu.memoryInUse().pinned() == own + 8192);
      // The first one made it, and is gone before the others.
      first.close();
      windows.getFirst().close();
      assertThat(fake.calls("cuMemHostUnregister")).isZero();
      assertThatThrownBy(() -> second.mapHost(bar, HostMemoryKind.REGISTERS))
          .isInstanceOf(DmaMappingException.class)
          .hasMessageContaining("only 8192 of them");
      windows.get(1).close();
      more.close();
      more.close();
      firstAgain.close();
      assertThat(fake.calls("cuMemHostUnregister")).isEqualTo(1);
      windows.get(2).close();
    }
  }

  @Test
  void whereAnotherDeviceCannotHaveItNothingStaysPinned() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(4096, 4096);
      String function = "cuMemHostGetDevicePointer_v2";
      // The first one is of the registration.
      fake.fail(function, fake.calls(function) + 2, 801);
      assertThatThrownBy(() -> first.mapHost(memory, HostMemoryKind.MEMORY))
          .isInstanceOf(DmaMappingException.class)
          .hasMessageStartingWith("gpu:0 Fake 40 cannot be given 4096 bytes of host memory: ");
      assertThat(fake.calls("cuMemHostUnregister")).isEqualTo(1);
      assertThat(first.memoryInUse().pinned()).isEqualTo(own);
    }
  }

  @Test
  void whoTakesMemoryOfAGpuWaitsForTheKernelsOfAllItsUsers() throws InterruptedException {
    KernelRun kernel = firstAgain.runningKernel();
    // The other GPU has nothing to wait for.
    second.allocate(4096).close();
    CountDownLatch taken = new CountDownLatch(1);
    Thread taker =
        Thread.ofPlatform()
            .start(
                () -> {
                  first.allocate(4096);
                  taken.countDown();
                });
    assertThat(taken.await(200, TimeUnit.MILLISECONDS)).isFalse();
    kernel.close();
    assertThat(taken.await(10, TimeUnit.SECONDS)).isTrue();
    taker.join();
  }
}
