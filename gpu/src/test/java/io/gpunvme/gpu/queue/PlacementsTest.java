package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.queue.DeviceLayout.Queue;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.testing.ForwardingFunction;
import java.lang.foreign.MemorySegment;
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
                  + " memory)\",\"completions\":\"completion queues in GPU memory: all queues are"
                  + " in GPU memory\"}");
    }
  }

  /** A real SSD's completion could overtake data that goes elsewhere. */
  @Test
  void completionsOfARealSsdGoWhereTheDataGoes() {
    try (SimulatedController software = SimulatedController.create(SimConfig.defaults())) {
      PciFunction real = new RealFunction(software);
      for (Placement placement : Placement.values()) {
        assertThat(CompletionPlace.of(placement, true, real).host())
            .as("%s, a real SSD", placement)
            .isEqualTo(placement.hostData());
        assertThat(CompletionPlace.of(placement, true, software).host())
            .as("%s, software", placement)
            .isEqualTo(placement.hostQueues());
      }
      assertThat(CompletionPlace.of(Placement.VRAM_DATA, true, real).toString())
          .startsWith("completion queues in GPU memory: where the data goes");
      assertThat(CompletionPlace.of(Placement.VRAM_DATA, false, real).host()).isTrue();
    }
  }

  @Test
  void queuesOfARealSsdAreMadeThere() {
    SimulatedController device = SimulatedController.create(SimConfig.builder().build());
    try (FakeGpu gpu = new FakeGpu();
        NvmeController controller =
            NvmeController.open(new RealFunction(device), ControllerOptions.defaults())) {
      for (Placement placement : Placement.values()) {
        try (DeviceQueues queues =
            new DeviceQueues(controller, gpu, DeviceQueueOptions.exclusive(placement, 2, 4))) {
          for (DeviceQueue queue : queues.queues()) {
            MemorySegment struct =
                MemorySegment.ofAddress(queue.deviceAddress()).reinterpret(Queue.SIZE);
            assertThat(gpu.owns(DeviceLayout.getLong(struct, Queue.SQ)))
                .as("submission queue, %s", placement)
                .isEqualTo(!placement.hostQueues());
            assertThat(gpu.owns(DeviceLayout.getLong(struct, Queue.CQ)))
                .as("completion queue, %s", placement)
                .isEqualTo(!placement.hostData());
          }
        }
      }
    }
  }

  /** The embedded controller as an SSD behind registers. */
  private static final class RealFunction extends ForwardingFunction {
    RealFunction(SimulatedController device) {
      super(device);
    }

    @Override
    public boolean polled() {
      return false;
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
