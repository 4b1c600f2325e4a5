package io.gpunvme.tools.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.queue.Placement;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The benchmarks that read from an embedded SSD. */
@Timeout(300)
class BlockReadsTest {
  @ParameterizedTest
  @ValueSource(ints = {512, 4096})
  void theRandomKernelFindsItsBlocks(int block) throws Exception {
    try (CpuAccelerator cpu = CpuAccelerator.open();
        TwinKernels kernels = TwinKernels.load("reads", "RandomArgs", "gpunvme_bench_random");
        RandomBench bench = new RandomBench(cpu, kernels, 8 << 20, block, 1)) {
      Measurement m =
          bench.measure("random", Placement.HOST, 2, 16, /* commands= */ 2000, Repetitions.of(2));

      assertThat(m.samples()).hasSize(2);
      assertThat(m.conditions())
          .containsEntry("commands", 2000L)
          .containsEntry("block_bytes", block)
          .containsEntry("depth", 16);
    }
  }

  @Test
  void theSsdMayBeInAnotherProcess() throws Exception {
    try (CpuAccelerator cpu = CpuAccelerator.open();
        TwinKernels kernels = TwinKernels.load("reads", "RandomArgs", "gpunvme_bench_random");
        RandomBench bench = RandomBench.served(cpu, kernels, 8 << 20, 4096, 1)) {
      Measurement m =
          bench.measure("served", Placement.HOST, 2, 16, /* commands= */ 2000, Repetitions.of(1));

      assertThat(m.samples()).hasSize(1);
      assertThat(m.conditions()).containsEntry("commands", 2000L);
    }
  }

  @Test
  void blocksOfAnotherNumberAreFound() {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment medium = arena.allocate(16 << 10, 8);
      BlockPattern.stampBlocks(medium, 512);
      assertThat(BlockPattern.isBlock(medium, 512, 512, 1)).isTrue();
      assertThat(BlockPattern.isBlock(medium, 512, 512, 2)).isFalse();
      for (int at : new int[] {0, 8, 496, 504}) {
        byte was = medium.get(ValueLayout.JAVA_BYTE, 512 + at);
        medium.set(ValueLayout.JAVA_BYTE, 512 + at, (byte) ~was);
        assertThat(BlockPattern.isBlock(medium, 512, 512, 1)).isFalse();
        medium.set(ValueLayout.JAVA_BYTE, 512 + at, was);
      }
      BlockPattern.hashWords(medium);
      assertThat(BlockPattern.wrongWords(medium)).isZero();
      medium.set(ValueLayout.JAVA_BYTE, 77, (byte) 1);
      assertThat(BlockPattern.wrongWords(medium)).isEqualTo(1);
    }
  }

  @Test
  void theCpuReadsAtRandom() {
    Measurement m = CpuBenchmarks.random(512, 1, 8, Repetitions.of(1));

    assertThat(m.id()).isEqualTo("random.512.cpu");
    assertThat(m.unit()).isEqualTo("commands/s");
    assertThat(m.median()).isPositive();
    assertThat(m.conditions()).containsEntry("depth", 8).containsEntry("queue_pairs", 1);
  }

  @Test
  void theCpuReadsStreams() {
    Measurement m = CpuBenchmarks.stream(2, 4, Repetitions.of(1));

    assertThat(m.unit()).isEqualTo("GB/s");
    assertThat(m.conditions()).containsEntry("command_bytes", 1L << 20);
  }

  @Test
  void repetitionsAreCountedWithoutTheFirst() {
    int[] runs = new int[1];
    assertThat(Repetitions.of(3).samples(() -> runs[0]++)).containsExactly(1, 2, 3);
    assertThat(Repetitions.lasting(Duration.ofNanos(1)).samples(() -> 1)).hasSize(3);
    assertThatThrownBy(
            () ->
                Repetitions.of(3)
                    .samples(
                        () -> {
                          throw new BenchException("wrong");
                        }))
        .isInstanceOf(BenchException.class);
  }

  @Test
  void aMeasurementSummarisesItsSamples() {
    Measurement m = Measurement.of("x", "ns", new double[] {3, 1, 2}, Map.of());

    assertThat(m.median()).isEqualTo(2);
    assertThat(m.min()).isEqualTo(1);
    assertThat(m.max()).isEqualTo(3);
    assertThat(m.limitedBy(m).limit()).isEqualTo(new Measurement.Limit("x", 2));
  }
}
