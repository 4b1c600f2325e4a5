package io.gpunvme.tools.graph;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.queue.DeviceSources;
import io.gpunvme.testing.HeaderNumbers;
import io.gpunvme.testing.NativeCompiler;
import java.util.Map;
import org.junit.jupiter.api.Test;

class GraphLayoutTest {
  @Test
  void everyOffsetIsTheKernels() {
    HeaderNumbers numbers =
        new HeaderNumbers(
            NativeCompiler.CPP, DeviceSources.CUDA_WORDS + "#include \"kernels/graph.cu\"\n");
    for (Class<?> layout : GraphLayout.class.getDeclaredClasses()) {
      numbers.structure(layout, layout.getSimpleName(), Map.of());
    }
    assertThat(numbers.count()).isGreaterThan(30);
    numbers.compare(
        "-Wno-invalid-offsetof",
        "-Wno-missing-field-initializers",
        "-Wno-unused-function",
        DeviceSources.INCLUDE);
  }
}
