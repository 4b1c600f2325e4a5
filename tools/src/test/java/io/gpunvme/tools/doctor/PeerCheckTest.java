package io.gpunvme.tools.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.queue.CpuCuda;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.sim.serve.VfioUserServer;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Whether a kernel can drive an SSD, with the CPU in the place of the GPU. */
@Timeout(60)
class PeerCheckTest {
  @TempDir Path folder;

  private static PeerReport check(String address) {
    try (GpuAccelerator gpu = GpuAccelerator.open(FakeDriver.load(CpuCuda.library()).device(0));
        Device device = Device.open(address, ControllerOptions.defaults())) {
      return PeerCheck.run(device, gpu, false);
    }
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
