package io.gpunvme.gpu.accel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.Cuda;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaNotFoundException;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

class AcceleratorsTest {
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

  @Test
  void otherKindsAreRefused() {
    assertThatThrownBy(() -> Accelerators.open("tpu"))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("'tpu'");
  }
}
