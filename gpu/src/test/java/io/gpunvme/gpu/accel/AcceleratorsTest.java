package io.gpunvme.gpu.accel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.Cuda;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.cuda.FakeDriver;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class AcceleratorsTest {
  private static final String[] TWO = {"-DFAKE_DEVICES=2"};

  @Test
  void theCpuIsAlwaysThere() {
    try (Accelerator cpu = Accelerators.open("cpu").accelerator()) {
      assertThat(cpu.gpu()).isFalse();
      DeviceBuffer buffer = cpu.allocatePinned(1);
      assertThat(buffer.isHost()).isTrue();
      assertThat(buffer.deviceAddress()).isEqualTo(buffer.segment().address());
      HostWindow window = cpu.mapHost(buffer.segment(), HostMemoryKind.MEMORY);
      assertThat(window.deviceAddress()).isEqualTo(buffer.deviceAddress());
      window.close();
    }
  }

  @Test
  void withoutAGpuTheBestIsTheCpuAndItSaysWhy() {
    Assumptions.assumeFalse(Cuda.isAvailable(), "there is a GPU");
    Accelerators.Choice best = Accelerators.open("auto");
    try (Accelerator accelerator = best.accelerator()) {
      assertThat(accelerator.gpu()).isFalse();
      assertThat(best.reason())
          .startsWith("no GPU: ")
          .hasSizeLessThan(120)
          .doesNotContain("LD_LIBRARY_PATH", "\n");
    }
    assertThatThrownBy(() -> Accelerators.open("gpu"))
        .isInstanceOfAny(CudaNotFoundException.class, CudaException.class);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"tpu", "", "gpu:", "gpu:-1", "gpu:1x", "gpu:99999", "3b:00", "GPU-", "GPU-xyz"})
  void whatIsNoNameIsRefused(String name) {
    assertThatThrownBy(() -> Accelerators.open(name))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageStartingWith("no accelerator '" + name + "': must be auto, cpu, gpu, gpu:N,");
  }

  /** What a name opens where CUDA lists two GPUs. */
  private static String opened(String name, Map<String, String> environment, String... options) {
    Cuda cuda = FakeDriver.fresh(options.length == 0 ? TWO : options).load();
    Accelerators.Choice choice = Accelerators.open(name, environment, () -> cuda);
    try (Accelerator accelerator = choice.accelerator()) {
      return accelerator.name() + " because " + choice.reason();
    }
  }

  private static String opened(String name) {
    return opened(name, Map.of());
  }

  @Test
  void aGpuIsNamedByItsNumberItsAddressOrItsUuid() {
    assertThat(opened("gpu")).isEqualTo("gpu:0 Fake 40 because a GPU was requested");
    assertThat(opened("auto")).isEqualTo("gpu:0 Fake 40 because the first GPU that CUDA lists");
    assertThat(opened("gpu:0")).startsWith("gpu:0 ");
    for (String second :
        List.of(
            "gpu:1",
            "GPU:1",
            "0000:3c:00.0",
            "3C:00.0",
            "00000000:3C:00.0",
            "GPU-41102030-4050-6070-8090-a0b0c0d0e0f0",
            "gpu-41")) {
      assertThat(opened(second)).isEqualTo("gpu:1 Fake 41 because " + second + " was requested");
    }
  }

  @Test
  void whereThereIsOneItsNameIsTheProducts() {
    assertThat(opened("gpu:0", Map.of(), "-DFAKE_DEVICES=1")).startsWith("Fake 40 because");
  }

  @Test
  void aPartOfAGpuIsNamedByItsUuidOrTheGpus() {
    String[] parts = {"-DFAKE_DEVICES=2", "-DFAKE_MIG=1"};
    assertThat(opened("MIG-41", Map.of(), parts)).startsWith("gpu:1 ");
    assertThat(opened("GPU-c1", Map.of(), parts)).startsWith("gpu:1 ");
    assertThatThrownBy(() -> opened("GPU-41", Map.of(), parts))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageStartingWith(
            "no GPU is 'GPU-41'; CUDA lists gpu:0 Fake 40, 0000:3b:00.0, MIG-40");
  }

  @Test
  void aGpuThatIsNotThereIsAnErrorThatListsThoseThatAre() {
    for (String name : List.of("gpu:2", "0000:01:00.0", "GPU-42")) {
      assertThatThrownBy(() -> opened(name))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessage(
              "no GPU is '%s'; CUDA lists gpu:0 Fake 40, 0000:3b:00.0,".formatted(name)
                  + " GPU-40102030-4050-6070-8090-a0b0c0d0e0f0; gpu:1 Fake 41, 0000:3c:00.0,"
                  + " GPU-41102030-4050-6070-8090-a0b0c0d0e0f0"
                  + " (CUDA_VISIBLE_DEVICES decides which)");
    }
    assertThatThrownBy(() -> opened("GPU-4"))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageStartingWith("2 GPUs are 'GPU-4'; ");
  }

  @Test
  void theEnvironmentNamesItForThoseWhoNameNone() {
    Map<String, String> second = Map.of("GPUNVME_ACCELERATOR", "gpu:1");
    String because = " because GPUNVME_ACCELERATOR=";
    assertThat(opened("auto", second)).isEqualTo("gpu:1 Fake 41" + because + "gpu:1");
    assertThat(opened("gpu", second)).isEqualTo("gpu:1 Fake 41" + because + "gpu:1");
    assertThat(opened("gpu:0", second)).startsWith("gpu:0 ").endsWith("gpu:0 was requested");
    assertThat(opened("cpu", second)).endsWith("the CPU stand-in was requested");
    Map<String, String> cpu = Map.of("GPUNVME_ACCELERATOR", "cpu");
    assertThat(opened("auto", cpu)).startsWith("CPU").endsWith(because + "cpu");
    assertThat(opened("gpu", cpu)).startsWith("gpu:0 ");
    Map<String, String> none = Map.of("GPUNVME_ACCELERATOR", "");
    assertThat(opened("auto", none)).startsWith("gpu:0 ");
    assertThatThrownBy(() -> opened("auto", Map.of("GPUNVME_ACCELERATOR", "tpu")))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageStartingWith("GPUNVME_ACCELERATOR: no accelerator 'tpu'");
    // Who names one does not need the variable.
    assertThat(opened("gpu:1", Map.of("GPUNVME_ACCELERATOR", "tpu"))).startsWith("gpu:1 ");
    // Who asks for the second GPU does not want another one because that is not there.
    assertThatThrownBy(() -> opened("auto", second, "-DFAKE_DEVICES=1"))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageStartingWith("no GPU is 'gpu:1'");
  }
}
