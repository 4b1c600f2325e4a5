package io.gpunvme.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;

final class CudaTest {
  @Test
  void theDeviceAnswersQuestions() {
    FakeDriver fake = FakeDriver.fresh();
    Cuda cuda = fake.load();
    assertThat(cuda.driverVersion()).isEqualTo(new CudaVersion(13, 0));
    assertThat(cuda.deviceCount()).isEqualTo(1);
    CudaDevice device = cuda.device(0);
    assertThat(device.ordinal()).isZero();
    assertThat(device.name()).isEqualTo("Fake 40");
    assertThat(device.pciBusId()).isEqualTo("0000:3b:00.0");
    assertThat(device.totalMemory()).isEqualTo(80L << 30);
    assertThat(device.attribute(CudaAttribute.MULTIPROCESSOR_COUNT)).isEqualTo(16);
    assertThat(device.computeCapability()).isEqualTo(new ComputeCapability(75, 76));
    assertThat(device).hasToString("CUDA device 0 (Fake 40, 0000:3b:00.0)");
  }

  @Test
  void attributesNewerThanTheDriverAreInabilities() {
    CudaDevice device = FakeDriver.fresh().load().device(0);
    CudaException e =
        catchThrowableOfType(
            CudaException.class,
            () -> device.attribute(CudaAttribute.HOST_ALLOC_DMA_BUF_SUPPORTED));
    assertThat(e.code()).isEqualTo(CudaException.INVALID_VALUE);
    assertThat(device.can(CudaAttribute.HOST_ALLOC_DMA_BUF_SUPPORTED)).isFalse();
    assertThat(device.can(CudaAttribute.DMA_BUF_SUPPORTED)).isTrue();
    assertThat(device.gpuDirect()).isEqualTo(new GpuDirect(true, true, WritesOrdering.OWNER, true));
  }

  @Test
  void otherErrorsOfAQuestionAreNotInabilities() {
    FakeDriver fake = FakeDriver.fresh();
    CudaDevice device = fake.load().device(0);
    fake.fail("cuDeviceGetAttribute", 1, 700);
    assertThatThrownBy(() -> device.can(CudaAttribute.DMA_BUF_SUPPORTED))
        .isInstanceOf(CudaException.class);
  }

  @Test
  void errorsSayWhatFailedAndWhatToDo() {
    FakeDriver fake = FakeDriver.fresh();
    try (CudaContext context = fake.openContext()) {
      fake.fail("cuMemAlloc_v2", 1, CudaException.OUT_OF_MEMORY);
      CudaException e = catchThrowableOfType(CudaException.class, () -> context.allocate(1L << 40));
      assertThat(e.call()).isEqualTo("cuMemAlloc 1099511627776 bytes");
      assertThat(e.code()).isEqualTo(2);
      assertThat(e.name()).isEqualTo("CUDA_ERROR_OUT_OF_MEMORY");
      assertThat(e.text()).isEqualTo("out of memory");
      assertThat(e.contextLost()).isFalse();
      assertThat(e)
          .hasMessage(
              "cuMemAlloc 1099511627776 bytes: CUDA_ERROR_OUT_OF_MEMORY (2, out of memory);"
                  + " allocate less or end other users of the GPU (nvidia-smi)");
    }
  }

  @Test
  void codesThatTheDriverDoesNotKnowKeepTheirNumber() {
    FakeDriver fake = FakeDriver.fresh();
    Cuda cuda = fake.load();
    fake.fail("cuDeviceGetCount", 1, 4711);
    assertThatThrownBy(cuda::deviceCount)
        .hasMessage("cuDeviceGetCount: CUDA error 4711 (4711, no description)");
  }

  @Test
  void aDeviceThatIsNotThereIsAnError() {
    Cuda cuda = FakeDriver.fresh().load();
    assertThatThrownBy(() -> cuda.device(7))
        .isInstanceOf(CudaException.class)
        .hasMessageStartingWith("cuDeviceGet device 7: ");
  }

  @Test
  void aDriverWithoutDevicesSaysSo() {
    FakeDriver fake = FakeDriver.fresh("-DFAKE_DEVICES=0");
    assertThatThrownBy(fake::load)
        .isInstanceOf(CudaException.class)
        .hasMessageStartingWith(
            "cuInit: CUDA_ERROR_NO_DEVICE (100, no CUDA-capable device is detected);"
                + " check that nvidia-smi lists a GPU");
  }

  @Test
  void functionsThatTheDriverIsTooOldForAreNamed() {
    FakeDriver fake = FakeDriver.ofVersion(12020);
    try (CudaContext context = fake.openContext();
        CudaStream stream = context.stream()) {
      assertThat(context.hasBatchCopies()).isFalse();
      CopyBatch batch = new CopyBatch(1);
      batch.add(1, 2, 3);
      assertThatThrownBy(() -> stream.copyBatchAsync(batch))
          .isInstanceOf(CudaFunctionMissingException.class)
          .hasMessageContaining("cuMemcpyBatchAsync")
          .hasMessageContaining("the NVIDIA driver for CUDA 12.2 (")
          .hasMessageContaining("has no such function: update it");
    }
    fake.assertClean("a missing function");
  }

  @Test
  void olderDriversDoTheRest() {
    FakeDriver fake = FakeDriver.ofVersion(12020);
    try (CudaContext context = fake.openContext();
        CudaEvent start = context.timingEvent();
        CudaEvent end = context.timingEvent();
        CudaStream stream = context.stream();
        CudaModule module = context.loadModule(new byte[] {'p'})) {
      assertThat(end.millisecondsSince(start)).isEqualTo(1.5f);
      assertThat(fake.calls("cuEventElapsedTime")).isEqualTo(1);
      CudaFunction kernel = module.function("kernel_4");
      assertThat(fake.calls("cuFuncGetAttribute")).as("loads the kernel").isEqualTo(1);
      stream.launch(kernel, LaunchShape.of(1, 1), new KernelArguments().addInt(5));
    }
    fake.assertClean("an old driver");
  }

  @Test
  void sizesThatCannotBeAreRefused() {
    FakeDriver fake = FakeDriver.fresh();
    try (CudaContext context = fake.openContext();
        Arena arena = Arena.ofConfined()) {
      assertThatIllegalArgumentException().isThrownBy(() -> context.allocate(0));
      assertThatIllegalArgumentException().isThrownBy(() -> context.allocate(-1));
      assertThatIllegalArgumentException().isThrownBy(() -> context.allocate(1, 3));
      assertThatIllegalArgumentException().isThrownBy(() -> context.allocate(1, -4));
      assertThatIllegalArgumentException().isThrownBy(() -> context.allocate(Long.MAX_VALUE, 4096));
      assertThatIllegalArgumentException().isThrownBy(() -> context.allocatePinned(0));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> context.register(arena.allocate(8).asSlice(0, 0)));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> context.register(java.lang.foreign.MemorySegment.ofArray(new byte[8])));
      assertThatIllegalArgumentException().isThrownBy(() -> context.loadModule(new byte[0]));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> context.flushGpuDirectWrites(WritesOrdering.NONE));
    }
    fake.assertClean("refusals");
  }

  @Test
  void withoutTheLibraryLoadingSaysWhatWasLookedFor() {
    assumeFalse(Cuda.isAvailable(), "there is a GPU here");
    assertThatThrownBy(Cuda::load)
        .satisfiesAnyOf(
            e ->
                assertThat(e)
                    .isInstanceOf(CudaNotFoundException.class)
                    .hasMessageContaining("libcuda.so.1")
                    .hasMessageContaining("/usr/lib64")
                    .hasMessageContaining("GPUNVME_LIBCUDA"),
            e -> assertThat(e).isInstanceOf(CudaException.class));
    assertThatCode(Cuda::isAvailable).doesNotThrowAnyException();
  }

  @Test
  void versionsCompare() {
    CudaVersion version = CudaVersion.ofNumber(12080);
    assertThat(version).hasToString("12.8").isEqualTo(new CudaVersion(12, 8));
    assertThat(version.atLeast(12, 8)).isTrue();
    assertThat(version.atLeast(11, 9)).isTrue();
    assertThat(version.atLeast(12, 9)).isFalse();
    assertThat(version.atLeast(13, 0)).isFalse();
    assertThat(new ComputeCapability(9, 0)).hasToString("9.0");
    assertThat(new ComputeCapability(9, 0).sm()).isEqualTo("sm_90");
  }
}
