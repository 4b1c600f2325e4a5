package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.testing.CLibrary;
import io.gpunvme.testing.NativeCompiler;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The kernel of examples/KernelRead.java, compiled for the CPU, reads what it says. */
class KernelReadExampleTest {
  private static final int BLOCK = 4096;
  private static final int BLOCKS = 256;
  private static final int THREADS = 300;
  private static final int ANSWER_BYTES = 24;

  private static final String ENTRY =
      """
      extern "C" void all_threads(const Storage* storage, Answer* answers, unsigned threads) {
        for (blockIdx.x = 0; blockIdx.x <= threads; blockIdx.x++) {
          sum_blocks(storage, answers, threads);
        }
      }
      """;

  private MethodHandle compile() throws Exception {
    String program = Files.readString(Path.of("../examples/KernelRead.java"));
    Matcher kernel = Pattern.compile("(?s)KERNEL =\\s*\"\"\"\n(.*?)\"\"\"").matcher(program);
    assertThat(kernel.find()).isTrue();
    String text = kernel.group(1).stripIndent().translateEscapes();
    return new CLibrary(
            NativeCompiler.CPP.library(
                "example", DeviceSources.CUDA_WORDS + text + ENTRY, "-O1", DeviceSources.INCLUDE))
        .function("all_threads", void.class, long.class, long.class, int.class);
  }

  @Test
  void everyThreadAddsUpItsBlock() throws Throwable {
    MethodHandle kernel = compile();
    try (FakeGpu gpu = new FakeGpu();
        Device ssd = Device.open("sim:size=1MiB,lba=4096,latency=0", ControllerOptions.defaults());
        DeviceBuffer data = gpu.allocate((long) THREADS * BLOCK);
        DeviceBuffer answers = gpu.allocate((THREADS + 1L) * ANSWER_BYTES);
        KernelStorage storage =
            KernelStorage.open(
                ssd, gpu, KernelStorageOptions.in(Placement.VRAM_DATA).with(2, 32))) {
      MemorySegment medium = ssd.memory(1).orElseThrow();
      SplittableRandom random = new SplittableRandom(3);
      for (long at = 0; at < medium.byteSize(); at += Long.BYTES) {
        DeviceLayout.setLong(medium, at, random.nextLong());
      }
      storage.register(data);

      kernel.invokeExact(storage.deviceHandle(), answers.deviceAddress(), THREADS);

      MemorySegment told = Arena.ofAuto().allocate((THREADS + 1L) * ANSWER_BYTES, Long.BYTES);
      answers.copyToHost(0, told);
      for (int thread = 0; thread < THREADS; thread++) {
        long block = thread * 2654435761L % BLOCKS;
        long sum = 0;
        for (long at = block * BLOCK; at < (block + 1) * BLOCK; at += Long.BYTES) {
          sum += DeviceLayout.getLong(medium, at);
        }
        MemorySegment answer = told.asSlice((long) thread * ANSWER_BYTES, ANSWER_BYTES);
        assertThat(DeviceLayout.getLong(answer, 0)).as("block").isEqualTo(block);
        assertThat(DeviceLayout.getLong(answer, 8)).as("sum").isEqualTo(sum);
        assertThat(DeviceLayout.getLong(answer, 16)).as("status").isZero();
      }
      // The thread too many has nothing to say.
      assertThat(told.asSlice((long) THREADS * ANSWER_BYTES).toArray(ValueLayout.JAVA_BYTE))
          .containsOnly(0);
      assertThat(storage.stats().getFirst().completed()).isEqualTo(THREADS);
    }
  }
}
