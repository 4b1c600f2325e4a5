package io.gpunvme.tools.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.tools.machine.Machine;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The doctor on a machine with a GPU. */
@Tag("gpu")
class CudaViewGpuTest {
  @BeforeAll
  static void requireGpu() {
    TestGpu.require();
  }

  @Test
  void theGpuIsSeen() {
    CudaView view = CudaView.look();

    assertThat(view.problem()).isEmpty();
    assertThat(view.gpus()).isNotEmpty();
    assertThat(view.gpus().getFirst().name()).isNotEmpty();
    Diagnosis diagnosis = Doctor.examine(Machine.read(HostPaths.host()), view, FileView.look(null));
    assertThat(diagnosis.obstacles(Way.EMBEDDED_GPU_VRAM)).isEmpty();
    assertThat(diagnosis.findings())
        .extracting(Finding::id)
        .contains("gpu")
        .doesNotContain("no-gpu");
  }
}
