package io.gpunvme.tools.example;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.driver.ControllerOptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The kernel chooses what it reads, and comes to the CPU's result. */
@Tag("gpu")
@Timeout(100)
class GatherGpuTest {
  private static Device device(String options) {
    return Device.open(
        DeviceAddress.parse("sim:latency=0,size=8MiB" + options),
        ControllerOptions.builder().allowWrite(true).build(),
        "");
  }

  @ParameterizedTest
  @EnumSource
  void everyWalkEndsWhereTheCpuEnds(Placement placement) {
    try (GpuAccelerator gpu = TestGpu.open();
        Device device = device("")) {
      GatherReport report =
          Gather.run(new GatherOptions(2048, 4096, 1000, 5, placement, 3), device, gpu);

      assertThat(report.reads()).isEqualTo(5000);
      assertThat(report.verified()).isTrue();
    }
  }

  @Test
  void rowsThatAreNoBlocksAreRefused() {
    try (GpuAccelerator gpu = TestGpu.open();
        Device device = device(",lba=4096")) {
      assertThatThrownBy(
              () -> Gather.run(new GatherOptions(16, 6144, 32, 1, Placement.HOST, 3), device, gpu))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("whole blocks");
    }
  }
}
