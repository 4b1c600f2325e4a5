package io.gpunvme.tools.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.gpu.accel.CpuAccelerator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** {@link QueueBench} with the real kernels on the CPU. The time is for a machine that is busy. */
@Timeout(300)
class QueueBenchTwinTest {
  private final CpuAccelerator cpu = CpuAccelerator.open();
  private final QueueBench bench =
      new QueueBench(
          cpu,
          TwinKernels.load(
              "bench",
              "BenchArgs",
              "gpunvme_bench_exclusive",
              "gpunvme_bench_block",
              "gpunvme_bench_shared",
              "gpunvme_bench_served",
              "gpunvme_bench_qd1",
              "gpunvme_bench_shared_qd1",
              "gpunvme_bench_served_qd1"),
          TwinKernels.load("responder", "ResponderArgs", "gpunvme_responder"),
          /* threads= */ 1);

  @AfterEach
  void close() {
    bench.close();
    cpu.close();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void exclusiveQueuesAreCountedOnBothSides(boolean vram) {
    QueueCase c = QueueCase.exclusive("test", vram, 2, 64, 40_000);

    Measurement m = bench.throughput(c, Repetitions.of(2));

    assertThat(m.samples()).hasSize(2).doesNotContain(0);
    assertThat(m.conditions())
        .containsEntry("commands", 40_000L)
        .containsEntry("queue_pairs", 2)
        .containsEntry("responder", vram ? "kernel" : "1 Java threads");
    assertThat((double) m.conditions().get("doorbells_per_command")).isBetween(1e-6, 2.0);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void queuesOfBlocksAreCountedOnBothSides(boolean vram) {
    QueueCase c = QueueCase.block("test", vram, 2, 64, 20_000);

    Measurement m = bench.throughput(c, Repetitions.of(2));

    assertThat(m.conditions())
        .containsEntry("commands", 20_000L)
        .containsEntry("queue_pairs", 2)
        .containsEntry("warps", 8);
    // A doorbell of the block's announces what several warps wrote.
    assertThat((double) m.conditions().get("doorbells_per_command")).isBetween(1e-6, 2.0);
  }

  @ParameterizedTest
  @CsvSource({"false, SHARED", "true, SHARED", "false, SERVED", "true, SERVED"})
  void sharedQueuesAreCountedOnBothSides(boolean vram, BenchKernel kernel) {
    QueueShape shape = new QueueShape(vram, true, 2, 32);
    QueueCase c = QueueCase.shared("test", kernel, shape, 4, 1, Arrival.TOGETHER, 4_000);

    Measurement m = bench.throughput(c, Repetitions.of(1));

    assertThat(m.conditions()).containsEntry("commands", 4_000L).containsEntry("warps", 4);
    assertThat(m.conditions().get("serving_warps"))
        .isEqualTo(kernel == BenchKernel.SERVED ? 2 : null);
  }

  @ParameterizedTest
  @EnumSource(names = {"EXCLUSIVE_QD1", "SHARED_QD1", "SERVED_QD1"})
  void latenciesHavePercentiles(BenchKernel kernel) {
    QueueCase small = QueueCases.latency(false, kernel);
    QueueCase c =
        new QueueCase(
            small.id(), small.kernel(), small.shape(), 1, 1, Arrival.TOGETHER, /* commands= */ 500);

    Measurement m = bench.latency(c, Repetitions.of(2));

    assertThat(m.unit()).isEqualTo("ns");
    assertThat((long) m.conditions().get("p50_ns"))
        .isPositive()
        .isLessThanOrEqualTo((long) m.conditions().get("p99_ns"));
    assertThat(m.conditions()).containsKey("p99.9_ns");
  }

  @Test
  void commandsThatNeverComeAreNoResult() {
    QueueShape shape = new QueueShape(false, true, 1, 32);
    QueueCase c = new QueueCase("test", BenchKernel.SHARED, shape, 2, 2, Arrival.TOGETHER, 100);

    // The twin's warps have one lane, so half of the commands that the case asks for never come.
    assertThatThrownBy(() -> bench.throughput(c, Repetitions.of(1)))
        .isInstanceOf(BenchException.class)
        .hasMessageContaining("of 400 commands, 200 succeeded")
        .hasMessageContaining("the responder answered 200");
  }
}
