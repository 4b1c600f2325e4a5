package io.gpunvme.tools.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.InitiatorKind;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The benchmark of sets, small, by the CPU in the GPU's place. */
class SetBenchTest {
  private static final long BYTES = 64 << 20;

  private final CpuAccelerator accelerator = CpuAccelerator.open();

  @AfterEach
  void close() {
    accelerator.close();
  }

  /** The CPU looks; {@code spoiled} words are made wrong before. */
  private record HostWords(int spoiled) implements SetBench.Words {
    @Override
    public void clear(DeviceBuffer target) {
      target.segment().fill((byte) 0);
    }

    @Override
    public void check(String id, DeviceBuffer target) {
      if (spoiled != 0) {
        target.segment().asSlice(BYTES - spoiled * 8L).fill((byte) 0);
      }
      long wrong = BlockPattern.wrongWords(target.segment());
      if (wrong != 0) {
        throw new BenchException(id + ": " + wrong + " words are wrong");
      }
    }
  }

  private SetBench bench(int spoiled) {
    return new SetBench(accelerator, new HostWords(spoiled), InitiatorKind.CPU, BYTES);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "set.stripe.1.host",
        "set.stripe.8.host",
        "set.replica.2.host",
        "set.replica.4.host"
      })
  void everySetIsReadAndChecked(String id) {
    try (SetBench bench = bench(0)) {
      Measurement m = bench.measure(id, Repetitions.of(4));
      assertThat(m.id()).isEqualTo(id);
      assertThat(m.samples()).hasSize(4);
      assertThat(m.median()).isPositive();
      assertThat(m.conditions().get("mode").toString())
          .contains(id.contains("stripe") ? "stripes of 1024 KiB" : " copies");
    }
  }

  @Test
  void wrongDataIsNoResult() {
    try (SetBench bench = bench(3)) {
      assertThatExceptionOfType(BenchException.class)
          .isThrownBy(() -> bench.measure("set.stripe.2.host", Repetitions.of(1)))
          .withMessageContaining("3 words are wrong");
    }
  }

  @Test
  void thereIsOneOfEachSize() {
    List<String> ids = SetBench.ids();
    assertThat(ids).hasSize(17).startsWith(SetBench.LIMIT);
    assertThat(ids).contains("set.replica.8.vram", "set.stripe.4.host");
    assertThat(GpuBenchmarks.ids()).containsAll(ids);
  }
}
