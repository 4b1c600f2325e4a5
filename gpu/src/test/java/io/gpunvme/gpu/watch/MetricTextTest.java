package io.gpunvme.gpu.watch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MetricTextTest {
  private static final long SEED = Long.getLong("gpunvme.seed", 1);

  private final MetricText text = new MetricText();

  private static Map<String, String> labels(String value) {
    return new TreeMap<>(Map.of("device", value, "side", "driver"));
  }

  private static MetricText reread(MetricText text) {
    return MetricText.parse(text.toString());
  }

  @Test
  void eachMetricIsExplainedOnceAboveItsSamples() {
    text.add(Metric.COMMANDS, labels("sim:"), 7);
    text.add(Metric.SECONDS, Metric.SUM, labels("sim:"), "0.000001500");
    text.add(Metric.SECONDS, Metric.COUNT, labels("sim:"), "2");
    text.add(Metric.COMMANDS, labels("vfio:0000:01:00.0"), 8);

    assertThat(text)
        .hasToString(
            """
            # HELP gpunvme_commands_total I/O commands that were completed.
            # TYPE gpunvme_commands_total counter
            gpunvme_commands_total{device="sim:",side="driver"} 7
            gpunvme_commands_total{device="vfio:0000:01:00.0",side="driver"} 8
            # HELP gpunvme_command_seconds Time from submission to completion.
            # TYPE gpunvme_command_seconds summary
            gpunvme_command_seconds_sum{device="sim:",side="driver"} 0.000001500
            gpunvme_command_seconds_count{device="sim:",side="driver"} 2
            # EOF
            """);
    assertThat(reread(text)).hasToString(text.toString());
    assertThat(reread(text).samples(Metric.SECONDS))
        .extracting(Sample::number)
        .containsExactly(1.5e-6, 2.0);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "\"",
        "\\",
        "\\\"",
        "\\n",
        "\n",
        "a\nb# EOF\n",
        "\r\u2028\u0085\u001b[2J",
        "},x=\"y\"} 5",
        " ",
        "größer 😀",
        "\\\\n"
      })
  void anyTextCanBeALabel(String value) {
    text.add(Metric.INFO, labels(value), 1);
    assertThat(reread(text).samples(Metric.INFO))
        .singleElement()
        .isEqualTo(text.samples(Metric.INFO).getFirst());
    assertThat(reread(text).samples(Metric.INFO).getFirst().label("device")).isEqualTo(value);
  }

  @Test
  void randomLabelsSurvive() {
    SplittableRandom random = new SplittableRandom(SEED);
    char[] some = {'"', '\\', '\n', 'n', '{', '}', ',', '=', ' ', '#', 'é', '\t', 'a'};
    for (int i = 0; i < 5000; i++) {
      StringBuilder value = new StringBuilder();
      for (int n = random.nextInt(8); n > 0; n--) {
        value.append(some[random.nextInt(some.length)]);
      }
      MetricText one = new MetricText();
      one.add(Metric.BYTES, labels(value.toString()), i);
      assertThat(reread(one).samples(Metric.BYTES).getFirst().label("device"))
          .as("seed %d, %d", SEED, i)
          .isEqualTo(value.toString());
    }
  }

  @Test
  void aTextThatWasCutOffAnywhereIsNotUsed() {
    text.add(Metric.COMMANDS, labels("sim:"), 1234);
    text.add(Metric.OUTSTANDING, labels("sim:\n"), 5);
    String whole = text.toString();
    for (int length = 0; length < whole.length(); length++) {
      String cut = whole.substring(0, length);
      assertThatThrownBy(() -> MetricText.parse(cut))
          .as("%s", length)
          .isInstanceOf(UnreadableMetricsException.class);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "name",
        "name ",
        "name{ 1",
        "name{a=\"b\" 1",
        "name{a=\"b} 1",
        "name{a=b} 1",
        "name{1a=\"b\"} 1",
        "1name 1",
        "name 0x10",
        "name 1d",
        "name one",
        "name 1 2 3",
        "{a=\"b\"} 1"
      })
  void aLineThatMakesNoSenseIsNamed(String line) {
    assertThatThrownBy(() -> MetricText.parse(line + "\n# EOF\n"))
        .isInstanceOf(UnreadableMetricsException.class)
        .hasMessageContaining(line.strip());
  }

  @Test
  void whatAnotherVersionTellsIsKept() {
    MetricText other =
        MetricText.parse(
            """
            # a comment
            # HELP gpunvme_new_total Something new.
            # TYPE gpunvme_new_total counter
            gpunvme_new_total{ a = "b" , } 1e3 1700000000

            gpunvme_bare +Inf
            gpunvme_bare NaN
            # EOF
            what follows is not read
            """);
    text.add(Metric.COMMANDS, labels("sim:"), 1);
    text.addAll(other, s -> true, Metric.PID, "12");
    assertThat(text)
        .asString()
        .endsWith(
            """
            # HELP gpunvme_new_total Something new.
            # TYPE gpunvme_new_total counter
            gpunvme_new_total{a="b",pid="12"} 1e3
            gpunvme_bare{pid="12"} +Inf
            # EOF
            """);
  }

  @Test
  void textsOfSeveralProcessesAreOne() {
    for (String pid : List.of("1", "2")) {
      MetricText own = new MetricText();
      own.add(Metric.COMMANDS, labels("sim:"), 7);
      own.add(Metric.OUTSTANDING, labels("sim:"), 1);
      text.addAll(own, s -> s.name().equals(Metric.COMMANDS.id()), Metric.PID, pid);
    }
    assertThat(text)
        .hasToString(
            """
            # HELP gpunvme_commands_total I/O commands that were completed.
            # TYPE gpunvme_commands_total counter
            gpunvme_commands_total{device="sim:",side="driver",pid="1"} 7
            gpunvme_commands_total{device="sim:",side="driver",pid="2"} 7
            # EOF
            """);
  }
}
