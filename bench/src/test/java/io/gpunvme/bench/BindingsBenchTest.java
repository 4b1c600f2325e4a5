package io.gpunvme.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.gpunvme.tools.bench.Measurement;
import io.gpunvme.tools.report.Meanings;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@link BindingsBench}: its options, and its results from times. */
class BindingsBenchTest {
  private static final Measurement LIMIT =
      new Measurement("ceiling.memcpy", "GB/s", new double[] {10}, Map.of(), null, null);

  private final BindingsResults results = new BindingsResults(Map.of("processors", 2));

  private static BindingsBenchOptions options(String... args) {
    return BindingsBenchOptions.parse(List.of(args), Map.of());
  }

  private static Map<BindingsSide, List<double[]>> answers(BindingsSide side, double... nanos) {
    return new TreeMap<>(
        Map.of(side, java.util.Arrays.stream(nanos).mapToObj(n -> new double[] {n}).toList()));
  }

  @Test
  void theSourceTreeIsTheDefault() {
    assertThat(options())
        .isEqualTo(
            new BindingsBenchOptions(
                "gpu",
                Path.of("bench", "results"),
                20,
                1L << 30,
                List.of(""),
                Path.of("capi", "target"),
                Path.of("capi", "target", "app"),
                "python3",
                Path.of("python", "src")));
  }

  @Test
  void theJarsAreWhereTheEnvironmentSays() {
    assertThat(BindingsBenchOptions.parse(List.of(), Map.of("GPUNVME_HOME", "/jars")).home())
        .isEqualTo(Path.of("/jars"));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "--nonsense x",
        "--out",
        "--reps 0",
        "--size 4095",
        "--size 0",
        "--size many",
        "--accelerator auto",
        "--only bindings.write",
        "cpu"
      })
  void nonsenseIsRefused(String line) {
    assertThatThrownBy(() -> options(line.split(" ")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(line.split(" ")[0]);
  }

  @Test
  void whatIsAskedForIsMeasuredBesideJava() {
    BindingsBenchOptions calls = options("--only", "bindings.call.c");

    assertThat(calls.wants(BindingsSide.JAVA, BindingsSide.CALL)).isTrue();
    assertThat(calls.wants(BindingsSide.C, BindingsSide.CALL)).isTrue();
    assertThat(calls.wants(BindingsSide.PYTHON)).isFalse();
    assertThat(calls.wantsAny(BindingsSide.READ)).isFalse();
    assertThat(calls.wants(BindingsSide.JAVA, BindingsSide.READ)).isFalse();
  }

  @Test
  void aCallIsComparedWithJavas() {
    double[] java = {10, 30, 20};
    Measurement slow = results.calls(java, answers(BindingsSide.C, 1020, 5000, 1000)).getLast();
    Measurement fast = results.calls(java, answers(BindingsSide.C, 1019, 5000, 1000)).getLast();

    assertThat(slow.id()).isEqualTo("bindings.call.c");
    assertThat(slow.conditions())
        .containsEntry("processors", 2)
        .containsEntry("over_java_ns", 1000.0)
        .containsEntry("goal", "less than 1000 over Java: missed");
    assertThat(fast.conditions())
        .containsEntry("over_java_ns", 999.0)
        .containsEntry("goal", "less than 1000 over Java: met");
  }

  @Test
  void pythonSaysWhatReachesTheLibraryToo() {
    List<double[]> python = List.of(new double[] {50, 300}, new double[] {40, 500});

    Measurement m =
        results.calls(new double[] {20, 20}, Map.of(BindingsSide.PYTHON, python)).getLast();

    assertThat(m.samples()).containsExactly(50, 40);
    assertThat(m.conditions())
        .containsEntry("over_java_ns", 30.0)
        .containsEntry("by_ctypes_ns", 500.0)
        .containsEntry("by_ctypes_over_java_ns", 480.0)
        .doesNotContainKey("goal");
  }

  /** The medians alone would say 1.0: it is the ratio within each turn that counts. */
  @Test
  void aReadIsComparedWithThatOfTheSameTurn() {
    double[] java = {100, 200, 400};

    List<Measurement> all =
        results.reads(1000, java, answers(BindingsSide.PYTHON, 200, 400, 100), LIMIT);

    assertThat(all)
        .extracting(Measurement::id)
        .containsExactly("bindings.read.java", "bindings.read.python");
    assertThat(all.getFirst().samples()).containsExactly(10, 5, 2.5);
    assertThat(all).allMatch(m -> m.limit() != null && m.limit().value() == 10);
    assertThat((double) all.getLast().conditions().get("to_java")).isCloseTo(0.5, within(1e-9));
    assertThat(all.getLast().conditions())
        .containsEntry("goal", "at least 0.98 of Java: missed")
        .containsEntry("memory", "torch.Tensor");
  }

  @Test
  void theGoalOfReadsIsMetFrom98PercentOn() {
    Measurement good =
        results.reads(1, new double[] {98}, answers(BindingsSide.C, 100), LIMIT).getLast();
    Measurement bad =
        results.reads(1, new double[] {97.9}, answers(BindingsSide.C, 100), LIMIT).getLast();

    assertThat(good.conditions()).containsEntry("goal", "at least 0.98 of Java: met");
    assertThat(bad.conditions()).containsEntry("goal", "at least 0.98 of Java: missed");
  }

  @Test
  void everyResultHasAMeaning() {
    for (BindingsSide side : BindingsSide.values()) {
      assertThat(Meanings.of(side.call())).isNotEmpty();
      assertThat(Meanings.of(side.read())).isNotEmpty();
    }
    assertThat(Meanings.of(HostCopy.ID)).isNotEmpty();
  }
}
