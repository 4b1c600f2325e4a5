package io.gpunvme.tools.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.CpuCuda;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Each of the results, of a small graph, by kernels that the CPU plays. */
@Timeout(180)
class GraphBenchTest {
  @Test
  void everyProgramIsMeasuredInEveryPlace() {
    try (GpuAccelerator gpu = GpuAccelerator.open(FakeDriver.load(CpuCuda.library()).device(0));
        GraphBench bench = new GraphBench(gpu, 9, 1, 512)) {
      assertThat(GraphBench.ids()).hasSize(16);
      for (String id : GraphBench.ids()) {
        Measurement result = bench.measure(id, Repetitions.of(1));
        assertThat(result.id()).isEqualTo(id);
        assertThat(result.unit()).isEqualTo("edges/s");
        assertThat(result.median()).isPositive();
        assertThat(result.conditions().get("scale")).isEqualTo(9);
        assertThat(result.conditions().containsKey("reads")).isEqualTo(id.split("\\.").length == 2);
        if (!GraphBench.limit(id).isEmpty()) {
          assertThat(GraphBench.ids()).contains(GraphBench.limit(id));
        }
      }
    }
  }
}
