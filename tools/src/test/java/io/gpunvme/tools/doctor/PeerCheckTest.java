package io.gpunvme.tools.doctor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.queue.CpuCuda;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.sim.serve.VfioUserServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Whether a kernel can drive an SSD, with the CPU in the place of the GPU. */
@Timeout(60)
class PeerCheckTest {
  private static final Duration LOOK = Duration.ofMillis(20);

  @TempDir Path folder;

  private static PeerReport check(String address) {
    return check(address, "");
  }

  private static PeerReport check(String address, String faults) {
    try (GpuAccelerator gpu = GpuAccelerator.open(FakeDriver.load(CpuCuda.library()).device(0));
        Device device =
            Device.open(DeviceAddress.parse(address), ControllerOptions.defaults(), faults)) {
      return PeerCheck.run(device, gpu, false, LOOK, nanos -> {});
    }
  }

  private static PeerStep step(PeerReport report, String name) {
    return report.steps().stream().filter(s -> s.name().equals(name)).findFirst().orElseThrow();
  }

  /** Its bytes are no zeroes, so that the end of the data is something. */
  private String image() throws IOException {
    byte[] bytes = new byte[1 << 20];
    new Random(1).nextBytes(bytes);
    return "sim:latency=0,file=" + Files.write(folder.resolve("ssd.img"), bytes);
  }

  @Test
  void dataIsThereBeforeItsCompletion() throws IOException {
    PeerReport report = check(image());
    assertThat(step(report, PeerCheck.ARRIVAL).outcome()).isEqualTo(PeerStep.Outcome.PASSED);
    assertThat(step(report, PeerCheck.HOST_COMPLETIONS).outcome())
        .as("completions are in host memory already")
        .isEqualTo(PeerStep.Outcome.SKIPPED);
    assertThat(report.arrivals())
        .extracting(ArrivalCount::bytes)
        .containsExactly(4096L, (long) DataArrival.MOST_BYTES);
    assertThat(report.arrivals())
        .allMatch(a -> a.used() && a.hostCompletions() && a.reads() >= 200)
        .allMatch(a -> a.late() == 0 && a.longestNanos() == 0);
  }

  @Test
  void aCompletionThatOvertakesItsDataIsSeen() throws IOException {
    PeerReport report = check(image(), "early=2ms on read after=20 every=3");
    PeerStep seen = step(report, PeerCheck.ARRIVAL);
    assertThat(seen.outcome()).as("%s", seen).isEqualTo(PeerStep.Outcome.FAILED);
    assertThat(seen.detail()).contains("came after its completion", "us later");
    assertThat(report.verdict()).isEqualTo(PeerReport.Verdict.ONLY_HOST_DATA);
    for (ArrivalCount count : report.arrivals()) {
      assertThat(count.late()).as("%s", count).isBetween(1L, count.reads() / 2);
      assertThat(count.longestNanos()).as("%s", count).isBetween(50_000L, 1_000_000_000L);
    }
  }

  @Test
  void dataThatNeverArrivesIsSaid() throws IOException {
    PeerReport report = check(image(), "early=1us skip on read after=20");
    assertThat(step(report, PeerCheck.ARRIVAL).detail()).contains("did not arrive");
    assertThat(report.verdict()).isEqualTo(PeerReport.Verdict.ONLY_HOST_DATA);
  }

  @ParameterizedTest
  @CsvSource({
    "status=generic/namespace-not-ready on read after=20 every=500, PASSED, reads of 4096",
    "status=media/unrecovered-read-error dnr on read nth=30, FAILED, Unrecovered Read Error",
  })
  void anSsdThatFailsMeanwhileIsSaid(String faults, PeerStep.Outcome outcome, String why)
      throws IOException {
    PeerStep seen = step(check(image(), faults), PeerCheck.ARRIVAL);
    assertThat(seen.outcome()).as("%s", seen).isEqualTo(outcome);
    assertThat(seen.detail()).contains(why);
  }

  /** It would be said that the GPU, or GPU memory, does not reach it, and that the CPU does. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 30})
  void anSsdThatGoesMeanwhileHasNoReport(int read) throws IOException {
    String image = image();
    assertThatExceptionOfType(DeviceGoneException.class)
        .isThrownBy(() -> check(image, "gone on read nth=" + read))
        .withMessageContaining("CSTS reads all ones");
  }

  @ParameterizedTest
  @ValueSource(strings = {"sim:size=4KiB,lba=4096", "sim:size=64KiB,mdts=8KiB", "sim:queues=1"})
  void smallSsdsAreTried(String address) {
    PeerReport report = check(address);
    assertThat(step(report, PeerCheck.ARRIVAL).outcome())
        .as("%s", report.steps())
        .isEqualTo(PeerStep.Outcome.PASSED);
  }

  @Test
  void itDrivesAnSsdOfThisProcess() {
    PeerReport report = check("sim:size=1MiB,latency=0");
    assertThat(report.verdict())
        .as("%s", report.steps())
        .isEqualTo(PeerReport.Verdict.GPU_DRIVES_SSD);
  }

  @Test
  void itDrivesAnSsdOfAnotherProcess() throws IOException {
    try (SimulatedController ssd =
            SimulatedController.create(SimConfig.parse("size=1MiB,latency=0"));
        VfioUserServer server = VfioUserServer.start(ssd, folder.resolve("socket"))) {
      PeerReport report = check("vfio-user:" + server.socket());
      assertThat(report.verdict())
          .as("%s", report.steps())
          .isEqualTo(PeerReport.Verdict.GPU_DRIVES_SSD);
    }
  }
}
