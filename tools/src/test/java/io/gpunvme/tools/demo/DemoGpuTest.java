package io.gpunvme.tools.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.ByteRange;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.sim.DoorbellWindow;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.sim.serve.VfioUserServer;
import io.gpunvme.tools.ssd.Ssds;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
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
    assertThat(report.getByCpu()).hasValue(0);
    assertThat(report.putByCpu()).hasValue(0);
    assertThat(report.pinned()).isEqualTo(!placement.hostData());
    assertThat(report.image()).isNull();
    assertThat(report.accelerator()).contains("NVIDIA");
  }

  private static DemoReport borrowed(VfioUserServer server, ByteRange range, DemoOptions options)
      throws IOException {
    String address = "vfio-user:" + server.socket();
    try (Ssds ssds = Ssds.open(address, options.controller(), "", 1)) {
      return Demo.run(ssds, range, options, DemoListener.NONE);
    }
  }

  @Test
  void theSsdMayBeBehindASocket() throws IOException {
    Path socket = folder.resolve("ssd");
    SimConfig config = SimConfig.parse("size=64MiB,latency=0,workers=2");
    try (SimulatedController ssd = SimulatedController.create(config);
        VfioUserServer server = VfioUserServer.start(ssd, socket)) {
      DemoReport report =
          borrowed(
              server,
              new ByteRange(1 << 20, 32 << 20),
              options(InitiatorKind.GPU, Placement.HOST, "").withSample(20 << 20));

      assertThat(report.verified()).isTrue();
      assertThat(report.get().initiator()).isEqualTo("GPU");
      assertThat(report.getByCpu()).isEmpty();
      assertThat(ssd.stats().ioCommands(DoorbellWindow.CPU))
          .isGreaterThanOrEqualTo(report.get().commands() + report.put().commands());
    }
  }

  @Test
  void aSocketIsGivenNoGpuMemory() throws IOException {
    Path socket = folder.resolve("ssd");
    SimConfig config = SimConfig.parse("size=64MiB,latency=0,workers=2");
    try (SimulatedController ssd = SimulatedController.create(config);
        VfioUserServer server = VfioUserServer.start(ssd, socket)) {
      DemoOptions wanted = options(InitiatorKind.GPU, Placement.VRAM_DATA, "");

      assertThatThrownBy(() -> borrowed(server, new ByteRange(0, 64 << 20), wanted))
          .isInstanceOf(DmaMappingException.class)
          .hasMessageContaining("host memory only");
    }
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
    assertThat(report.getByCpu()).hasValue(report.get().commands());
  }
}
