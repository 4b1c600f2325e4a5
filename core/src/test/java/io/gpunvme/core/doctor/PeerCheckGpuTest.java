package io.gpunvme.core.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.core.accel.GpuAccelerator;
import io.gpunvme.core.accel.TestGpu;
import io.gpunvme.core.device.Device;
import io.gpunvme.core.device.DeviceAddress;
import io.gpunvme.core.doctor.PeerReport.Verdict;
import io.gpunvme.core.doctor.PeerStep.Outcome;
import io.gpunvme.nvme.driver.ControllerOptions;
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
      return PeerCheck.run(device, gpu, read);
    }
  }

  @Test
  void theDoorbellIsHeard() {
    PeerReport report = run("", false);

    assertThat(report.verdict()).as("%s", report.steps()).isEqualTo(Verdict.GPU_DRIVES_SSD);
    assertThat(report.steps())
        .extracting(PeerStep::outcome)
        .containsExactly(Outcome.PASSED, Outcome.PASSED, Outcome.SKIPPED);
  }

  @Test
  void registersAreReadWhenAskedFor() {
    PeerReport report = run("", true);

    assertThat(report.steps().getLast().outcome())
        .as("%s", report.steps())
        .isEqualTo(Outcome.PASSED);
    assertThat(report.steps().getLast().detail()).contains("00010400h");
  }

  @Test
  void aControllerThatDoesNotAnswerIsSaid() {
    PeerReport report = run("drop on read", false);

    assertThat(report.verdict()).isEqualTo(Verdict.DOORBELL_NOT_HEARD);
    assertThat(report.steps().get(1).detail()).contains("did not complete");
  }
}
