package io.gpunvme.cuda;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** With NVIDIA's own compiler. */
final class NvrtcLibraryTest {
  private static final List<String> OPTIONS =
      List.of("--gpu-architecture=compute_75", "--std=c++17");

  private final Nvrtc nvrtc = TestNvrtc.load();

  @Test
  void compilesWithHeaders() {
    NvrtcSource source =
        new NvrtcSource(
            "scale.cu",
            """
            #include "lib/factor.cuh"
            extern "C" __global__ void scale(float* data) { data[threadIdx.x] *= FACTOR; }
            """,
            Map.of("lib/factor.cuh", "#define FACTOR 2.0f\n"));
    NvrtcProgram program = nvrtc.compile(source, OPTIONS);
    assertThat(new String(program.ptx(), US_ASCII))
        .contains(".visible .entry scale(", ".target sm_75");
    assertThat(nvrtc.version().major()).isGreaterThanOrEqualTo(12);
  }

  @Test
  void errorsHaveFileAndLine() {
    NvrtcSource source =
        new NvrtcSource("wrong.cu", "\n__global__ void f() { nothing(); }", Map.of());
    CudaCompileException e =
        catchThrowableOfType(CudaCompileException.class, () -> nvrtc.compile(source, OPTIONS));
    assertThat(e.log()).contains("wrong.cu(2)", "nothing");
  }
}
