package io.gpunvme.tools.top;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.watch.MetricText;
import io.gpunvme.gpu.watch.Processes;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Rates from what processes told at two moments. */
class TopLooksTest {
  private static final String SSD = "device=\"vfio:0000:01:00.0\",side=\"driver\",controller=\"1\"";

  private final TopLooks looks = new TopLooks(List.of());

  private static Processes.Answer answer(long pid, double seconds, String... lines) {
    return new Processes.Answer(
        pid, Math.round(seconds * 1e9), MetricText.parse(String.join("\n", lines) + "\n# EOF\n"));
  }

  private static Processes all(Processes.Answer... answers) {
    return new Processes(List.of(answers), List.of());
  }

  private static Processes.Answer ssd(double seconds, long commands, long bytes, double sum) {
    String queue = "{" + SSD + ",queue=\"1\",initiator=\"cpu\"";
    return answer(
        7,
        seconds,
        "gpunvme_controller_info{" + SSD + ",model=\"Fast\",program=\"python3\"} 1",
        "gpunvme_recoveries_total{" + SSD + "} 2",
        "gpunvme_commands_total" + queue + "} " + commands,
        "gpunvme_outstanding" + queue + "} 5",
        "gpunvme_retries_total" + queue + "} 3",
        "# TYPE gpunvme_command_seconds summary",
        "gpunvme_command_seconds_sum" + queue + "} " + sum,
        "gpunvme_command_seconds_count" + queue + "} " + commands,
        "gpunvme_bytes_total" + queue + ",direction=\"read\"} " + bytes,
        "gpunvme_bytes_total" + queue + ",direction=\"write\"} 0");
  }

  @Test
  void ratesAreDifferencesOfTheTimeBetween() {
    TopController first = looks.look(all(ssd(10, 100, 4096, 1))).controllers().getFirst();
    assertThat(first.rates().commandsPerSecond()).as("no earlier look").isNull();
    assertThat(first.rates().bytesPerSecond()).isNull();
    assertThat(first.rates().latencyMicros()).isNull();
    assertThat(first.rates().outstanding()).isEqualTo(5);

    TopController one =
        looks.look(all(ssd(12, 500, 4096 + 8_000_000, 1.002))).controllers().getFirst();
    assertThat(one.pid()).isEqualTo(7);
    assertThat(one.program()).isEqualTo("python3");
    assertThat(one.model()).isEqualTo("Fast");
    assertThat(one.isDriven()).isTrue();
    assertThat(one.device()).isEqualTo("vfio:0000:01:00.0");
    assertThat(one.recoveries()).isEqualTo(2);
    assertThat(one.queues()).singleElement().isEqualTo(new TopQueue("1", "cpu", one.rates()));
    assertThat(one.rates().commandsPerSecond()).isEqualTo(200);
    assertThat(one.rates().bytesPerSecond()).isEqualTo(4_000_000);
    assertThat(one.rates().writtenBytesPerSecond()).isZero();
    assertThat(Math.round(one.rates().latencyMicros() * 1000)).isEqualTo(5000);
    assertThat(one.rates().retries()).isEqualTo(3);

    TopController idle =
        looks.look(all(ssd(13, 500, 4096 + 8_000_000, 1.002))).controllers().getFirst();
    assertThat(idle.rates().commandsPerSecond()).isZero();
    assertThat(idle.rates().latencyMicros()).as("of no command").isNull();
  }

  @Test
  void countersThatBeganAnewCountFromThere() {
    looks.look(all(ssd(10, 100, 4096, 1)));
    TopController one = looks.look(all(ssd(11, 40, 512, 0.1))).controllers().getFirst();
    assertThat(one.rates().commandsPerSecond()).isEqualTo(40);
    assertThat(one.rates().readBytesPerSecond()).isEqualTo(512);
  }

  @Test
  void aProcessThatHasEndedIsNotShown() {
    looks.look(all(ssd(10, 100, 4096, 1)));
    assertThat(looks.look(all())).isEqualTo(new TopLook(List.of(), List.of(), List.of()));
  }

  /** The controller's side has no latencies, kernels of users have no bytes: neither is 0. */
  @Test
  void whatNobodyCountsIsNotKnown() {
    String served = "{device=\"vfio-user:/s\",side=\"controller\",controller=\"1\"";
    String kernel = "{" + SSD + ",queue=\"2\",initiator=\"gpu\"} ";
    looks.look(all(answer(1, 0, "gpunvme_bytes_total" + served + ",direction=\"read\"} 0")));
    looks.look(all(answer(1, 0), answer(2, 0, "gpunvme_commands_total" + kernel + 0)));
    List<TopController> both =
        looks
            .look(
                all(
                    answer(
                        1,
                        1,
                        "gpunvme_commands_total" + served + ",queue=\"1\"} 10",
                        "gpunvme_bytes_total" + served + ",direction=\"read\"} 5000",
                        "gpunvme_bytes_total" + served + ",direction=\"write\"} 0"),
                    answer(
                        2,
                        1,
                        "gpunvme_commands_total" + kernel + 30,
                        "gpunvme_outstanding" + kernel + 1,
                        "gpunvme_commands_total{" + SSD + ",queue=\"1\",initiator=\"cpu\"} 0",
                        "gpunvme_bytes_total{" + SSD + ",queue=\"1\",direction=\"read\"} 0",
                        "gpunvme_bytes_total{" + SSD + ",queue=\"1\",direction=\"write\"} 0")))
            .controllers();
    TopController kernels = both.getLast();
    assertThat(kernels.rates().commandsPerSecond()).isEqualTo(30);
    assertThat(kernels.rates().bytesPerSecond()).isNull();
    assertThat(kernels.rates().latencyMicros()).isNull();
    assertThat(kernels.queues()).extracting(TopQueue::queue).containsExactly("2");
    TopController controller = both.getFirst();
    assertThat(controller.isDriven()).isFalse();
    assertThat(controller.rates().commandsPerSecond()).as("no earlier look").isNull();
    assertThat(controller.rates().outstanding()).isNull();
    assertThat(controller.queues().getFirst().initiator()).isNull();
  }

  @Test
  void valuesThatMakeNoSenseAreNotUsed() {
    String queue = "{" + SSD + ",queue=\"1\"} ";
    looks.look(all(answer(1, 0, "gpunvme_commands_total" + queue + 1)));
    TopController one =
        looks
            .look(
                all(
                    answer(
                        1,
                        1,
                        "gpunvme_commands_total" + queue + "NaN",
                        "gpunvme_outstanding" + queue + "-5",
                        "gpunvme_retries_total" + queue + "+Inf",
                        "gpunvme_recoveries_total{" + SSD + "} NaN")))
            .controllers()
            .getFirst();
    assertThat(one.rates()).isEqualTo(new TopRates(null, null, null, null, null, null));
    assertThat(one.recoveries()).isNull();
  }

  @Test
  void onlyThoseThatWereAskedForAreShown() {
    List<TopTarget> targets =
        Stream.of("01:00.0", "kmod:0000:01:00.0", "stripe:vfio:0000:01:00.0,vfio:0000:02:00.0")
            .flatMap(text -> TopTarget.parse(text).stream())
            .toList();
    TopLooks some = new TopLooks(targets);
    Processes.Answer other =
        answer(
            8,
            0,
            "gpunvme_controller_info{device=\"sim:\",side=\"driver\",controller=\"1\"} 1",
            "gpunvme_controller_info{device=\"new:1\",side=\"driver\",controller=\"2\"} 1");
    TopLook look = some.look(all(ssd(1, 1, 1, 1), other));
    assertThat(look.controllers()).extracting(TopController::pid).containsExactly(7L);
    assertThat(look.undriven()).containsExactly("kmod:0000:01:00.0", "vfio:0000:02:00.0");
    assertThat(some.look(all(other)).undriven())
        .containsExactly("01:00.0", "kmod:0000:01:00.0", "vfio:0000:01:00.0", "vfio:0000:02:00.0");
    assertThat(looks.look(all(other)).controllers()).hasSize(2);
  }

  @Test
  void filesAreNoControllers() {
    for (String text : List.of("file:/x", "/x", "sim:#1", "stripe:/x,/y")) {
      assertThatThrownBy(() -> TopTarget.parse(text))
          .as(text)
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("names no controller");
    }
  }

  @Test
  void problemsArePassedOn() {
    assertThat(looks.look(new Processes(List.of(), List.of("process 5: no answer"))).problems())
        .containsExactly("process 5: no answer");
  }
}
