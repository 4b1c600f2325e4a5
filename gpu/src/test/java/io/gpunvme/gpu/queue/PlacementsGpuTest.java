package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.MemorySegment;
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

  private record HostOnly(SimulatedController device) implements PciFunction {
    @Override
    public String name() {
      return "host-only";
    }

    @Override
    public Bar bar(int index) {
      return device.bar(index);
    }

    @Override
    public ConfigSpace config() {
      return device.config();
    }

    @Override
    public int addressBits() {
      return device.addressBits();
    }

    @Override
    public BusRange map(MemorySegment memory) throws DmaMappingException {
      return device.map(memory);
    }

    @Override
    public void reset() {
      device.reset();
    }

    @Override
    public void close() {
      device.close();
    }
  }
}
