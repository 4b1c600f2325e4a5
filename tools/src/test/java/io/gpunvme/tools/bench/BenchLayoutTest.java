package io.gpunvme.tools.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.queue.NativeCompiler;
import java.lang.reflect.Field;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@link BenchLayout} says the same as the kernels. */
class BenchLayoutTest {
  @TempDir Path folder;

  @Test
  void everyOffsetIsTheKernels() throws Exception {
    for (Class<?> layout : BenchLayout.class.getDeclaredClasses()) {
      String file =
          switch (layout.getSimpleName()) {
            case "BenchArgs" -> "bench";
            case "RandomArgs" -> "reads";
            default -> "responder";
          };
      Map<String, Long> ours = new TreeMap<>();
      StringBuilder prints = new StringBuilder();
      for (Field field : layout.getDeclaredFields()) {
        String name = field.getName().toLowerCase(Locale.ROOT);
        ours.put(name, field.getLong(null));
        String value =
            name.equals("size")
                ? "sizeof(%s)".formatted(layout.getSimpleName())
                : "offsetof(%s, %s)".formatted(layout.getSimpleName(), name);
        prints.append("printf(\"%s %%zu\\n\", %s);\n".formatted(name, value));
      }

      assertThat(ours).hasSizeGreaterThan(8).isEqualTo(theirs(file, prints.toString()));
    }
  }

  private Map<String, Long> theirs(String file, String prints) throws Exception {
    Path program =
        NativeCompiler.compile(
            folder,
            file,
            """
            #include <cstddef>
            #include <cstdio>
            #define __device__
            #define __global__
            #define __launch_bounds__(n)
            struct Dim { unsigned x; };
            static Dim blockIdx, blockDim, threadIdx, gridDim;
            #include "kernels/FILE.cu"
            int main() {
              PRINTS
              return blockIdx.x + blockDim.x + threadIdx.x + gridDim.x;
            }
            """
                .replace("FILE", file)
                .replace("PRINTS", prints),
            "-Wno-invalid-offsetof",
            "-Wno-missing-field-initializers",
            "-Wno-unused-function");
    return NativeCompiler.run(List.of(program.toString()))
        .lines()
        .map(line -> line.split(" "))
        .collect(Collectors.toMap(p -> p[0], p -> Long.parseLong(p[1])));
  }
}
