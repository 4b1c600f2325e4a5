package io.gpunvme.cuda;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class CudaModuleTest {
  private final FakeDriver fake = FakeDriver.fresh();
  private final CudaContext context = fake.openContext();
  private final CudaStream stream = context.stream();
  private final CudaModule module = context.loadModule("some ptx".getBytes(US_ASCII));

  @AfterEach
  void close() {
    context.close();
    fake.assertClean("the test");
  }

  @Test
  void theImageArrivesTerminatedAndTheLogComesBack() {
    assertThat(fake.last("cuModuleLoadDataEx")).isEqualTo("some ptx");
    assertThat(module.log()).isEqualTo("info: some ptx");
  }

  @Test
  void anImageThatDoesNotLoadSaysWhy() {
    CudaModuleException e =
        catchThrowableOfType(
            CudaModuleException.class, () -> context.loadModule("bad".getBytes(US_ASCII)));
    assertThat(e.log()).isEqualTo("error: bad");
    assertThat(e)
        .hasMessage(
            "cuModuleLoadDataEx 3 bytes: CUDA_ERROR_INVALID_PTX (218, a PTX JIT compilation"
                + " failed; log: error: bad)");
  }

  @Test
  void functionsAreLoadedBeforeTheirFirstLaunch() {
    CudaFunction kernel = module.function("kernel_8");
    assertThat(fake.calls("cuFuncLoad")).isEqualTo(1);
    assertThat(kernel.name()).isEqualTo("kernel_8");
  }

  @Test
  void namesThatAreMissingAreErrors() {
    assertThatThrownBy(() -> module.function("x"))
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.code()).isEqualTo(CudaException.NOT_FOUND))
        .hasMessageStartingWith("cuModuleGetFunction x: CUDA_ERROR_NOT_FOUND");
    assertThatThrownBy(() -> module.global("x")).isInstanceOf(CudaException.class);
    assertThat(module.global("counter")).isEqualTo(new GlobalVariable(0x7000, 24));
  }

  @Test
  void functionsAnswerQuestions() {
    CudaFunction kernel = module.function("kernel");
    assertThat(kernel.attribute(FunctionAttribute.NUM_REGS)).isEqualTo(104);
    assertThat(kernel.attribute(FunctionAttribute.BINARY_VERSION)).isEqualTo(106);
    assertThat(kernel.maxActiveBlocks(256, 10)).isEqualTo(8);
    assertThat(fake.last("cuOccupancyMaxActiveBlocksPerMultiprocessor")).isEqualTo("256 10");
    kernel.allowDynamicShared(100_000);
    assertThat(fake.last("cuFuncSetAttribute")).isEqualTo("8 100000");
  }

  @Test
  void launchesPassShapeAndArguments() {
    CudaFunction kernel = module.function("kernel_8_4_1_8_4_3");
    KernelArguments arguments =
        new KernelArguments()
            .addLong(0x0807060504030201L)
            .addInt(0x0D0C0B0A)
            .addByte((byte) 0xFE)
            .addDouble(1.0)
            .addFloat(1.0f)
            .addStruct(MemorySegment.ofArray(new byte[] {1, 2, 3}));
    String in = "in 0x" + Long.toHexString(stream.handle());
    String values = "0102030405060708 0a0b0c0d fe 000000000000f03f 0000803f 010203";
    stream.launch(kernel, new LaunchShape(1, 2, 3, 4, 5, 6, 7), arguments);
    assertThat(fake.last("cuLaunchKernel")).isEqualTo("1,2,3 x 4,5,6 + 7 " + in + ": " + values);
    stream.launchCooperative(kernel, LaunchShape.of(9, 64).withShared(8), arguments);
    assertThat(fake.last("cuLaunchCooperativeKernel"))
        .isEqualTo("9,1,1 x 64,1,1 + 8 " + in + ": " + values);
  }

  @Test
  void argumentsThatDoNotFitNeverReachTheDriver() {
    CudaFunction kernel = module.function("kernel_8_4");
    LaunchShape shape = LaunchShape.of(1, 1);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> stream.launch(kernel, shape, new KernelArguments().addLong(1)))
        .withMessage(
            "kernel kernel_8_4 has parameters of [8, 4] bytes, the launch has arguments of [8]");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> stream.launch(kernel, shape, new KernelArguments().addInt(1).addLong(2)));
    assertThat(fake.calls("cuLaunchKernel")).isZero();
    CudaFunction none = module.function("kernel");
    stream.launch(none, shape, new KernelArguments());
    assertThat(fake.calls("cuLaunchKernel")).isEqualTo(1);
  }

  @Test
  void aFailedLaunchNamesTheKernel() {
    CudaFunction kernel = module.function("kernel");
    fake.fail("cuLaunchKernel", 1, 701);
    assertThatThrownBy(() -> stream.launch(kernel, LaunchShape.of(2, 32), new KernelArguments()))
        .hasMessageStartingWith(
            "cuLaunchKernel kernel 2x1x1 blocks of 32x1x1 threads with 0 bytes of shared memory: ");
  }

  @Test
  void shapesThatNoGpuHasAreRefused() {
    int[][] bad = {
      {0, 1, 1, 1, 1, 1, 0},
      {1, 0, 1, 1, 1, 1, 0},
      {1, 65536, 1, 1, 1, 1, 0},
      {1, 1, 65536, 1, 1, 1, 0},
      {1, 1, 1, 0, 1, 1, 0},
      {1, 1, 1, 1025, 1, 1, 0},
      {1, 1, 1, 33, 32, 1, 0},
      {1, 1, 1, 1, 1, 65, 0},
      {1, 1, 1, 1, 1, 1, -1},
    };
    for (int[] s : bad) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> new LaunchShape(s[0], s[1], s[2], s[3], s[4], s[5], s[6]));
    }
    assertThatCode(() -> new LaunchShape(Integer.MAX_VALUE, 65535, 65535, 4, 4, 64, 0))
        .doesNotThrowAnyException();
  }
}
