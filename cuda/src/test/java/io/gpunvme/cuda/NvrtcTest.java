package io.gpunvme.cuda;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.gpunvme.testing.CLibrary;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class NvrtcTest {
  private final Path file = StandIn.compile("nvrtc");
  private final Nvrtc nvrtc = Nvrtc.load(file);

  @AfterEach
  void noProgramIsLeft() {
    assertThat(new CLibrary(file).callInt("fake_live")).isZero();
  }

  @Test
  void sourceHeadersAndOptionsReachTheCompiler() {
    assertThat(nvrtc.version()).isEqualTo(new CudaVersion(12, 9));
    assertThat(nvrtc.library()).isEqualTo(file.toString());
    NvrtcProgram program =
        nvrtc.compile(
            new NvrtcSource("k.cu", "text", Map.of("a.cuh", "content")), List.of("-a", "-b"));
    assertThat(new String(program.ptx(), US_ASCII).stripTrailing().replace("\0", ""))
        .isEqualTo("k.cu[text] a.cuh[content] -a -b");
    assertThat(program.log()).isEqualTo("a warning");
  }

  @Test
  void aProgramNeedsNeitherHeadersNorOptions() {
    NvrtcProgram program = nvrtc.compile(new NvrtcSource("k.cu", "", Map.of()), List.of());
    assertThat(new String(program.ptx(), US_ASCII)).startsWith("k.cu[]\0");
  }

  @Test
  void errorsCarryTheLog() {
    CudaCompileException e =
        catchThrowableOfType(
            CudaCompileException.class,
            () ->
                nvrtc.compile(new NvrtcSource("k.cu", "#error", Map.of()), List.of("-std=c++17")));
    assertThat(e.log()).isEqualTo("kernel.cu(1): error: as asked");
    assertThat(e)
        .hasMessage(
            "NVRTC 12.9 cannot compile k.cu with [-std=c++17]: NVRTC_ERROR_COMPILATION\n"
                + "kernel.cu(1): error: as asked");
  }

  @Test
  void otherFailuresNameTheCall() {
    assertThatThrownBy(() -> nvrtc.compile(new NvrtcSource("", "", Map.of()), List.of()))
        .isInstanceOf(CudaCompileException.class)
        .hasMessage("nvrtcCreateProgram: NVRTC_ERROR_INVALID_INPUT");
  }
}
