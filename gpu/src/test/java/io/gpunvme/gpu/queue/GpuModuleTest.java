package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.NvrtcProgram;
import io.gpunvme.cuda.NvrtcSource;
import io.gpunvme.cuda.TestNvrtc;
import io.gpunvme.testing.NativeCompiler;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GpuModuleTest {
  @Test
  void everyHeaderIsPacked() throws IOException {
    try (Stream<Path> files = Files.list(DeviceSources.FOLDER.resolve("gpunvme"))) {
      assertThat(files.map(f -> f.getFileName().toString()))
          .containsExactlyInAnyOrderElementsOf(GpuModule.HEADERS);
    }
    assertThat(GpuModule.headers()).hasSize(2 * GpuModule.HEADERS.size());
  }

  /** By whichever name a header is found, its text counts once. */
  @Test
  void bothNamesOfAHeaderGoTogether(@TempDir Path folder) throws Exception {
    Files.createDirectory(folder.resolve("gpunvme"));
    for (Map.Entry<String, String> header : GpuModule.headers().entrySet()) {
      Files.writeString(folder.resolve(header.getKey()), header.getValue());
    }
    String text =
        """
        #include "shared.cuh"
        #include "gpunvme/io.cuh"
        #include "gpunvme/gpunvme.cuh"
        int main() { return static_cast<int>(sizeof(gpunvme::Storage)) - 64; }
        """;
    NativeCompiler.CPP.run(text, "-iquote", folder.toString(), DeviceSources.INCLUDE);
  }

  /** NVRTC needs no GPU. */
  @Test
  void aUsersKernelCompiles() {
    // The same header by both of its names.
    String text =
        "#include \"gpunvme/io.cuh\"\n#include \"gpunvme/queue.cuh\"\n" + UserKernel.SOURCE;
    NvrtcProgram program =
        TestNvrtc.load()
            .compile(
                new NvrtcSource("user.cu", text, GpuModule.headers()),
                List.of("--gpu-architecture=compute_75", "--std=c++17"));
    assertThat(new String(program.ptx(), StandardCharsets.UTF_8)).contains(".entry copy_blocks");
  }
}
