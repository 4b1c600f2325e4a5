package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.testing.ForwardingFunction;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Tag("gpu")
@Timeout(60)
class PlacementsGpuTest {
  @Test
  void withAnEmbeddedControllerAllOfThemArePossible() {
    try (SimulatedController device = SimulatedController.create(SimConfig.defaults());
        GpuAccelerator gpu = TestGpu.open()) {
      Placements placements = Placements.probe(gpu, device);
      assertThat(placements.toString()).contains("GPUDirect");
      for (Placement placement : Placement.values()) {
        assertThat(placements.reason(placement)).as("%s", placement).isNull();
      }
      assertThat(placements.gpuDirect()).isNotNull();
    }
  }

  /** Another transport than the embedded controller reaches host memory only. */
  @Test
  void aControllerThatReachesHostMemoryOnlySaysSo() {
    try (SimulatedController device = SimulatedController.create(SimConfig.defaults());
        GpuAccelerator gpu = TestGpu.open()) {
      Placements placements = Placements.probe(gpu, new HostOnly(device));
      assertThat(placements.reason(Placement.VRAM)).isNotNull();
      assertThat(placements.reason(Placement.VRAM_DATA)).isNotNull();
      assertThat(placements.possible(Placement.VRAM)).isFalse();
    }
  }

  private static final class HostOnly extends ForwardingFunction {
    HostOnly(SimulatedController device) {
      super(device);
    }

    @Override
    public BusRange map(RemoteMemory memory) {
      throw new DmaMappingException("host memory only");
    }
  }
}
