package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import org.junit.jupiter.api.Test;

class PlacementsTest {
  @Test
  void withoutAGpuThereIsNoneAndItSaysWhy() {
    try (SimulatedController device = SimulatedController.create(SimConfig.defaults());
        CpuAccelerator cpu = CpuAccelerator.open()) {
      Placements placements = Placements.probe(cpu, device);
      for (Placement placement : Placement.values()) {
        assertThat(placements.possible(placement)).isFalse();
        assertThat(placements.reason(placement)).contains("no GPU").contains("CPU stand-in");
      }
      assertThat(placements.gpuDirect()).isNull();
      assertThat(Placements.reachable(cpu, device)).isFalse();
      assertThat(placements.toString()).contains("vram-data", "no GPU");
      assertThat(placements.toJson().getAsJsonObject("placements").getAsJsonObject("vram"))
          .hasToString(
              "{\"possible\":false,\"reason\":\"no GPU: the accelerator is CPU stand-in (host"
                  + " memory)\"}");
    }
  }

  @Test
  void eachHasItsNameAndItsPlaces() {
    assertThat(Placement.values())
        .extracting(Placement::toString)
        .containsExactly("host", "vram-data", "vram");
    assertThat(Placement.VRAM_DATA.hostQueues()).isTrue();
    assertThat(Placement.VRAM_DATA.hostData()).isFalse();
    assertThat(Placement.VRAM.hostQueues()).isFalse();
    assertThat(Placement.HOST.hostData()).isTrue();
  }
}
