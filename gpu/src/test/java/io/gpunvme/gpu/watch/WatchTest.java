package io.gpunvme.gpu.watch;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.device.Device;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Controllers of this process, seen by whoever asks it. */
@Timeout(60)
class WatchTest {
  private static Device open(String serial) {
    return Device.open(
        "sim:serial=%s,latency=0".formatted(serial),
        ControllerOptions.builder().allowWrite(true).build());
  }

  /** What this process tells of controllers with this serial number. */
  private static List<Sample> told(MetricText text, Metric metric, String serial) {
    return text.samples(metric).stream()
        .filter(s -> String.valueOf(s.label(Metric.DEVICE)).contains("serial=" + serial + ","))
        .toList();
  }

  private static List<Sample> told(Metric metric, String serial) {
    return told(MetricText.parse(Watch.text()), metric, serial);
  }

  private static double sum(Metric metric, String serial) {
    return told(metric, serial).stream().mapToDouble(Sample::number).sum();
  }

  @Test
  void theNumbersAreThoseOfWhatWasMoved() {
    try (Device device = open("MOVED");
        BlockDevice blocks =
            BlockDevice.open(device.controller(), device.controller().namespace(1), 4);
        DmaBuffer buffer = DmaBuffer.allocate(device.controller().function(), 65536)) {
      blocks.write(0, 128, buffer.range(), 0);
      blocks.read(0, 64, buffer.range(), 0);

      assertThat(told(Metric.INFO, "MOVED"))
          .singleElement()
          .satisfies(s -> assertThat(s.label(Metric.MODEL)).isNotEmpty())
          .satisfies(s -> assertThat(s.label(Metric.SIDE)).isEqualTo(Metric.DRIVER));
      assertThat(sum(Metric.COMMANDS, "MOVED")).isEqualTo(2);
      assertThat(sum(Metric.SUBMITTED, "MOVED")).isEqualTo(2);
      assertThat(sum(Metric.OUTSTANDING, "MOVED")).isZero();
      assertThat(sum(Metric.RETRIES, "MOVED")).isZero();
      assertThat(sum(Metric.RECOVERIES, "MOVED")).isZero();
      assertThat(told(Metric.BYTES, "MOVED"))
          .extracting(s -> s.label(Metric.DIRECTION) + " " + s.value())
          .containsExactly("read " + 64 * 512, "write " + 128 * 512);
      List<Sample> seconds = told(Metric.SECONDS, "MOVED");
      assertThat(seconds.getFirst().number()).isBetween(1e-9, 60.0);
      assertThat(seconds.getLast().number()).isEqualTo(2);
      assertThat(seconds.getFirst().label(Metric.QUEUE)).isEqualTo("1");
      assertThat(seconds.getFirst().label(Metric.INITIATOR)).isEqualTo("cpu");
    }
    assertThat(told(Metric.INFO, "MOVED")).isEmpty();
  }

  @Test
  void thoseWithTheSameAddressAreToldApart() {
    try (Device _ = open("TWICE");
        Device _ = open("TWICE")) {
      assertThat(told(Metric.INFO, "TWICE"))
          .hasSize(2)
          .extracting(s -> s.label(Metric.NUMBER))
          .doesNotHaveDuplicates();
    }
  }

  @Test
  void aControllerThatIsClosedByWhomeverIsGone() {
    Device device = open("CLOSED");
    assertThat(told(Metric.INFO, "CLOSED")).hasSize(1);
    device.controller().close();
    assertThat(told(Metric.INFO, "CLOSED")).isEmpty();
    device.close();
  }

  @Test
  void aServedControllerTellsWhatItKnows() {
    SimulatedController sim = SimulatedController.create(SimConfig.builder().build());
    String address = "vfio-user:/served,serial=SERVED,x=y";
    try (sim;
        Watch.Registration watched = Watch.served(address, sim)) {
      assertThat(told(Metric.INFO, "SERVED"))
          .singleElement()
          .satisfies(s -> assertThat(s.label(Metric.SIDE)).isEqualTo(Metric.CONTROLLER));
      assertThat(sum(Metric.BYTES, "SERVED")).isZero();
      for (Metric unknown : List.of(Metric.SECONDS, Metric.OUTSTANDING, Metric.RETRIES)) {
        assertThat(told(unknown, "SERVED")).isEmpty();
      }
      watched.close();
      assertThat(told(Metric.INFO, "SERVED")).isEmpty();
    }
  }

  @Test
  void othersSeeAProcessForAsLongAsItHasAController() throws InterruptedException {
    long pid = ProcessHandle.current().pid();
    try (Device _ = open("OTHERS")) {
      while (seenByOthers(pid, "OTHERS").isEmpty()) {
        Thread.sleep(5);
      }
    }
    assertThat(seenByOthers(pid, "OTHERS")).isEmpty();
  }

  private static List<Sample> seenByOthers(long pid, String serial) {
    return Processes.ask().answers().stream()
        .filter(answer -> answer.pid() == pid)
        .flatMap(answer -> told(answer.metrics(), Metric.INFO, serial).stream())
        .toList();
  }

  @Test
  void controllersMayComeAndGoWhileOthersAsk() {
    AtomicBoolean over = new AtomicBoolean();
    CompletableFuture<Long> asking =
        CompletableFuture.supplyAsync(
            () -> {
              long most = 0;
              while (!over.get()) {
                most = Math.max(most, told(Metric.INFO, "COMES").size());
              }
              return most;
            });
    try {
      for (int i = 0; i < 10; i++) {
        List<Device> devices = new ArrayList<>();
        for (int n = 0; n < 4; n++) {
          devices.add(open("COMES"));
        }
        devices.forEach(Device::close);
      }
    } finally {
      over.set(true);
    }
    assertThat(asking.join()).isBetween(0L, 4L);
    assertThat(told(Metric.INFO, "COMES")).isEmpty();
  }

  @Test
  void programsHaveShortNamesWithoutTheirArguments() {
    assertThat(Program.name("io.gpunvme.cli/io.gpunvme.cli.Main bench random --device x"))
        .isEqualTo("gpunvme bench");
    assertThat(Program.name("io.gpunvme.cli.Main")).isEqualTo("gpunvme");
    assertThat(Program.name("io.gpunvme.cli.Main --version")).isEqualTo("gpunvme");
    assertThat(Program.name("com.example.Train secret")).isEqualTo("Train");
    assertThat(Program.name("/opt/train.jar secret")).isEqualTo("train.jar");
    assertThat(Program.name("")).isNotEmpty();
  }
}
