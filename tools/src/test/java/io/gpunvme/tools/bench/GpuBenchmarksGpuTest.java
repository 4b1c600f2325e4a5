package io.gpunvme.tools.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every benchmark once, short: it ends, and its counts and data are right. */
@Tag("gpu")
@Timeout(120)
class GpuBenchmarksGpuTest {
  private static GpuAccelerator gpu;
  private static GpuBenchmarks benchmarks;

  @BeforeAll
  static void open() {
    gpu = TestGpu.open();
    benchmarks = GpuBenchmarks.open(gpu);
  }

  @AfterAll
  static void close() {
    if (benchmarks != null) {
      benchmarks.close();
    }
    if (gpu != null) {
      gpu.close();
    }
  }

  /** The billion takes long, and is the exclusive queues' test again. */
  static List<String> ids() {
    return GpuBenchmarks.ids().stream().filter(id -> !id.endsWith(".billion")).toList();
  }

  @ParameterizedTest
  @MethodSource("ids")
  void everyResultIsVerified(String id) {
    Measurement m = benchmarks.run(id, Repetitions.of(1));

    assertThat(m.id()).isEqualTo(id);
    assertThat(m.median()).isPositive();
  }
}
