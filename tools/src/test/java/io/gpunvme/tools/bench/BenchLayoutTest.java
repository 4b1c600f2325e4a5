package io.gpunvme.tools.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.queue.DeviceSources;
import io.gpunvme.testing.HeaderNumbers;
import io.gpunvme.testing.NativeCompiler;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** {@link BenchLayout} says the same as the kernels. */
class BenchLayoutTest {
  @Test
  void everyOffsetIsTheKernels() {
    for (Class<?> layout : BenchLayout.class.getDeclaredClasses()) {
      String file =
          switch (layout.getSimpleName()) {
            case "BenchArgs" -> "bench";
            case "RandomArgs" -> "reads";
            case "ArrayArgs" -> "arrays";
            default -> "responder";
          };
      HeaderNumbers numbers =
          new HeaderNumbers(
              NativeCompiler.CPP,
              DeviceSources.CUDA_WORDS + "#include \"kernels/" + file + ".cu\"\n");
      numbers.structure(layout, layout.getSimpleName(), Map.of());
      assertThat(numbers.count()).isGreaterThan(7);
      numbers.compare(
          "-Wno-invalid-offsetof",
          "-Wno-missing-field-initializers",
          "-Wno-unused-function",
          DeviceSources.INCLUDE);
    }
  }
}
