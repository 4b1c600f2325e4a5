package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** From CUDA C++ to a running kernel. */
@Tag("gpu")
final class NvrtcGpuTest {
  @Test
  void whatIsCompiledRuns() {
    CudaDevice device = Gpu.device();
    Nvrtc nvrtc = load();
    NvrtcSource source =
        new NvrtcSource(
            "scale.cu",
            """
            #include "factor.cuh"
            extern "C" __global__ void scale(float* data) { data[threadIdx.x] *= FACTOR; }
            """,
            Map.of("factor.cuh", "#define FACTOR 2.5f\n"));
    NvrtcProgram program =
        nvrtc.compile(source, List.of("--gpu-architecture=compute_75", "--std=c++17"));
    try (CudaContext context = device.openPrimary();
        CudaModule module = context.loadModule(program.ptx());
        CudaStream stream = context.stream();
        PinnedMemory data = context.allocatePinned(128)) {
      for (int i = 0; i < 32; i++) {
        data.segment().setAtIndex(JAVA_FLOAT, i, i);
      }
      stream.launch(
          module.function("scale"),
          LaunchShape.of(1, 32),
          new KernelArguments().addLong(data.deviceAddress()));
      stream.synchronize();
      for (int i = 0; i < 32; i++) {
        assertThat(data.segment().getAtIndex(JAVA_FLOAT, i)).isEqualTo(2.5f * i);
      }
    }
  }

  private static Nvrtc load() {
    try {
      return Nvrtc.load();
    } catch (CudaNotFoundException e) {
      return Assumptions.abort(e.getMessage());
    }
  }
}
