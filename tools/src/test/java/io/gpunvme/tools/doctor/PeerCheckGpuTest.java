package io.gpunvme.tools.doctor;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.tools.doctor.PeerReport.Verdict;
import io.gpunvme.tools.doctor.PeerStep.Outcome;
import java.time.Duration;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** On an embedded controller, which every GPU can drive. */
@Tag("gpu")
@Timeout(100)
class PeerCheckGpuTest {
  @BeforeAll
  static void requireGpu() {
    TestGpu.require();
  }

  private static PeerReport run(String faults, boolean read) {
    ControllerOptions options =
        ControllerOptions.builder()
            .ioTimeout(Duration.ofMillis(500))
            .recoveryTimeout(Duration.ofMillis(500))
            .build();
    try (Device device = Device.open(DeviceAddress.parse("sim:size=8MiB"), options, faults);
        GpuAccelerator gpu = GpuAccelerator.open()) {
      return PeerCheck.run(device, gpu, read, Duration.ofMillis(200), nanos -> {});
    }
  }

  @Test
  void theDoorbellIsHeard() {
    PeerReport report = run("", false);

    assertThat(report.verdict()).as("%s", report.steps()).isEqualTo(Verdict.GPU_DRIVES_SSD);
    assertThat(report.steps())
        .extracting(PeerStep::outcome)
        .containsExactly(
            Outcome.PASSED, Outcome.PASSED, Outcome.PASSED, Outcome.SKIPPED, Outcome.SKIPPED);
    assertThat(report.arrivals()).hasSize(2).allMatch(a -> a.reads() > 100 && a.late() == 0);
  }

  @Test
  void aCompletionThatOvertakesItsDataIsSeen() {
    PeerReport report = run("early=200us on read after=20 every=10", false);

    assertThat(report.verdict()).as("%s", report.steps()).isEqualTo(Verdict.ONLY_HOST_DATA);
    assertThat(report.arrivals()).hasSize(2).allMatch(a -> a.late() > 0);
  }

  /** Its registers are calls, not memory. */
  @Test
  void registersOfAnEmbeddedControllerAreNotRead() {
    PeerReport report = run("", true);

    assertThat(report.verdict()).as("%s", report.steps()).isEqualTo(Verdict.GPU_DRIVES_SSD);
    assertThat(report.steps().getLast().outcome()).isEqualTo(Outcome.SKIPPED);
  }

  @Test
  void aLoadBringsWhatIsThere() {
    try (GpuAccelerator gpu = GpuAccelerator.open();
        DeviceBuffer memory = gpu.allocatePinned(4096)) {
      memory.segment().set(JAVA_INT, 8, 0x12345678);

      assertThat(RegisterLoad.load(gpu, memory.deviceAddress() + 8)).isEqualTo(0x12345678);
    }
  }

  @Test
  void aControllerThatDoesNotAnswerIsSaid() {
    PeerReport report = run("drop on read", false);

    assertThat(report.verdict()).isEqualTo(Verdict.DOORBELL_NOT_HEARD);
    assertThat(report.steps().get(1).detail()).contains("did not complete");
  }
}
