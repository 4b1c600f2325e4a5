package io.gpunvme.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.tools.bench.GpuBenchmarks;
import io.gpunvme.tools.bench.Measurement;
import io.gpunvme.tools.report.Meanings;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@link GpuBench}: what needs no GPU. */
class GpuBenchTest {
  private static final Path TMP = Path.of(System.getProperty("java.io.tmpdir"));

  @Test
  void measuresEverythingTwentyTimesByDefault() {
    assertThat(GpuBenchOptions.parse(List.of()))
        .isEqualTo(new GpuBenchOptions(Path.of("bench", "results"), 20, List.of(""), TMP, true));
  }

  @Test
  void optionsAreRead() {
    assertThat(GpuBenchOptions.parse(List.of("--quick", "--only", "queue.qd1,random.")))
        .isEqualTo(
            new GpuBenchOptions(
                Path.of("bench", "results"), 3, List.of("queue.qd1", "random."), TMP, false));
    assertThat(GpuBenchOptions.parse(List.of("--out", "x", "--quick", "--reps", "5")))
        .isEqualTo(new GpuBenchOptions(Path.of("x"), 5, List.of(""), TMP, true));
  }

  @ParameterizedTest
  @ValueSource(strings = {"--nonsense", "--out", "--reps 0", "--reps x", "--only"})
  void nonsenseIsRefused(String line) {
    assertThatThrownBy(() -> GpuBenchOptions.parse(List.of(line.split(" "))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(line.split(" ")[0]);
  }

  @Test
  void everyResultThatIsPromisedIsThere() {
    List<String> ids = GpuBenchmarks.ids();

    assertThat(ids)
        .doesNotHaveDuplicates()
        .contains(
            "ceiling.h2d", "queue.qd1", "queue.qd1.served", "random.4k.host", "random.512.host")
        .contains("tensors.copy", "tensors.rows.64", "tensors.rows.16384", "tensors.crc32c")
        .contains("layers.short", "layers.equal", "layers.long")
        .contains("stream.1m.vram-data", "stream.1m.vram", "queue.host.exclusive.billion");
    for (String where : List.of("host", "vram")) {
      for (int queues : new int[] {1, 4, 32, 64}) {
        assertThat(ids)
            .contains("queue.%s.exclusive.qp%d".formatted(where, queues))
            .contains("queue.%s.shared.qp%d".formatted(where, queues));
      }
      assertThat(ids)
          .contains("queue." + where + ".exclusive.qp128")
          .contains("queue." + where + ".block.qp1")
          .contains("queue." + where + ".block.qp4")
          .contains("queue." + where + ".block.qp16")
          .contains("queue." + where + ".shared.qp32.lanes4")
          .contains("queue." + where + ".served.qp1.lanes1")
          .contains("queue." + where + ".served.qp32")
          .contains("queue." + where + ".shared.qp1.own-times");
    }
    assertThat(ids).allMatch(id -> id.startsWith("queue.cpu") || !Meanings.of(id).isEmpty());
  }

  @Test
  void aLineSaysWhatMatters() {
    Measurement m =
        new Measurement(
            "queue.host.exclusive.qp1",
            "commands/s",
            new double[] {13e6},
            Map.of("doorbells_per_command", 0.02),
            new Measurement.Limit("other", 26e6),
            null);

    assertThat(GpuBench.line(m))
        .startsWith("queue.host.exclusive.qp1 ")
        .contains(" 13.00 ", "M commands/s, 1/50.0 doorbells, 0.50 of other");
  }
}
