package io.gpunvme.core.demo;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.core.accel.TestGpu;
import io.gpunvme.core.device.DeviceAddress;
import io.gpunvme.core.gpu.Placement;
import io.gpunvme.core.transfer.InitiatorKind;
import io.gpunvme.core.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.ControllerOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The demo with a GPU that asks for every block itself. */
@Tag("gpu")
@Timeout(100)
class DemoGpuTest {
  @TempDir Path folder;

  @BeforeAll
  static void requireGpu() {
    TestGpu.require();
  }

  private DemoOptions options(InitiatorKind initiator, Placement placement, String faults) {
    return DemoOptions.in(folder)
        .withSample(64 << 20)
        .withDevice(DeviceAddress.parse("sim:latency=0"), faults)
        .withController(
            ControllerOptions.builder()
                .allowWrite(true)
                .ioTimeout(Duration.ofMillis(500))
                .recoveryTimeout(Duration.ofMillis(500))
                .build())
        .withInitiator(InitiatorOptions.defaults().with(initiator, placement));
  }

  @ParameterizedTest
  @EnumSource
  void everyByteArrivesWithoutACommandFromTheCpu(Placement placement) throws IOException {
    DemoReport report = Demo.run(options(InitiatorKind.GPU, placement, ""), DemoListener.NONE);

    assertThat(report.verified()).isTrue();
    assertThat(report.get().initiator()).isEqualTo("GPU");
    assertThat(report.get().placement()).isEqualTo(placement);
    assertThat(report.getByCpu()).isZero();
    assertThat(report.putByCpu()).isZero();
    assertThat(report.pinned()).isEqualTo(!placement.hostData());
    assertThat(report.image()).isNull();
    assertThat(report.accelerator()).contains("NVIDIA");
  }

  @ParameterizedTest
  @EnumSource
  void faultsAreMended(Placement placement) throws IOException {
    String faults = "status=generic/namespace-not-ready on read every=5; drop on read nth=7";
    DemoReport report = Demo.run(options(InitiatorKind.GPU, placement, faults), DemoListener.NONE);

    assertThat(report.verified()).isTrue();
    assertThat(report.get().retries()).isPositive();
    assertThat(report.get().recoveries()).isPositive();
  }

  @ParameterizedTest
  @EnumSource(names = {"HOST", "VRAM_DATA"})
  void theCpuCanDoItToo(Placement placement) throws IOException {
    DemoReport report = Demo.run(options(InitiatorKind.CPU, placement, ""), DemoListener.NONE);

    assertThat(report.verified()).isTrue();
    assertThat(report.get().initiator()).isEqualTo("CPU");
    assertThat(report.get().placement()).isEqualTo(placement);
    assertThat(report.getByCpu()).isEqualTo(report.get().commands());
  }
}
