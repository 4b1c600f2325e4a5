package io.gpunvme.gpu.accel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaDevice;
import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.ffi.NumaCalls;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.testing.FakeMachine;
import io.gpunvme.testing.ForwardingFunction;
import io.gpunvme.testing.MemoryPolicies;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** On which NUMA node a GPU's pinned memory is: made-up nodes, but for node 0. */
class GpuHomeTest {
  private final FakeDriver fake = FakeDriver.fresh();
  private final CudaDevice device = fake.load().device(0);

  @TempDir Path folder;
  private FakeMachine machine;

  @BeforeEach
  void build() {
    machine = new FakeMachine(folder).node(0, "0-3", 1 << 20, 0).node(2, "4000", 1 << 20, 1);
    machine.gpu("", device.pciBusId()).numa(device.pciBusId(), 0);
  }

  private GpuAccelerator open(Map<String, String> environment) {
    return GpuAccelerator.open(device, environment, machine.paths());
  }

  private GpuAccelerator open(String option) {
    return open(Map.of(GpuAccelerator.NUMA_VARIABLE, option));
  }

  @Test
  void itIsTheGpusOwnUnlessTheVariableSaysOtherwise() {
    try (GpuAccelerator own = open(Map.of());
        GpuAccelerator automatic = open("auto");
        GpuAccelerator other = open("2");
        GpuAccelerator none = open("off")) {
      assertThat(own.home().node()).isZero();
      assertThat(automatic.home().node()).isZero();
      assertThat(other.home().node()).isEqualTo(2);
      assertThat(none.home()).hasToString("no NUMA node: numa=off");
    }
  }

  @Test
  void whatMakesNoSenseIsRefused() {
    assertThatThrownBy(() -> open("1"))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessage("GPUNVME_GPU_NUMA: numa=1: there is no such NUMA node; there are 0, 2");
    assertThatThrownBy(() -> open("near"))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessage("GPUNVME_GPU_NUMA: numa=near: must be auto, off or the number of a NUMA node");
  }

  private void assertAllIsPlaced(int pieces) {
    assertThat(fake.calls("cuMemHostAlloc")).isEqualTo(pieces);
    assertThat(fake.placed("cuMemHostAlloc")).as("on the node").isEqualTo(pieces);
    assertThat(NumaCalls.hasUsualMemory()).as("the thread is as it was").isTrue();
  }

  @Test
  void whatIsPinnedIsPlaced() {
    MemoryPolicies.needNode0();
    try (GpuAccelerator gpu = open(Map.of())) {
      int own = fake.calls("cuMemHostAlloc");
      assertThat(own).isPositive();
      assertAllIsPlaced(own);
      gpu.allocatePinned(1);
      assertAllIsPlaced(own + 1);
    }
    try (GpuAccelerator gpu = open("off")) {
      int before = fake.placed("cuMemHostAlloc");
      gpu.allocatePinned(1);
      assertThat(fake.placed("cuMemHostAlloc")).isEqualTo(before);
    }
  }

  @Test
  void soIsWhatEmbeddedControllersCopyThrough() {
    MemoryPolicies.needNode0();
    try (GpuAccelerator gpu = open(Map.of());
        SimulatedController ssd = SimulatedController.create(SimConfig.parse("size=1MiB"))) {
      int before = fake.calls("cuMemHostAlloc");
      gpu.allocate(1).mapFor(ssd);
      int stock = fake.calls("cuMemHostAlloc") - before;
      assertThat(stock).isPositive();
      assertAllIsPlaced(before + stock);
    }
  }

  @Test
  void soIsWhatControllersOfOtherProcessesReach() {
    MemoryPolicies.needNode0();
    try (GpuAccelerator gpu = open(Map.of());
        SimulatedController ssd = SimulatedController.create(SimConfig.parse("size=1MiB"))) {
      gpu.servePinned(
          new ForwardingFunction(ssd) {
            @Override
            public boolean needsDescriptors() {
              return true;
            }
          });
      gpu.allocatePinned(1);
      assertThat(fake.calls("cuMemHostRegister_v2")).isOne();
      assertThat(fake.placed("cuMemHostRegister_v2")).isOne();
      assertThat(NumaCalls.hasUsualMemory()).isTrue();
    }
  }

  @Test
  void theStandInHasNone() {
    try (Accelerator cpu = CpuAccelerator.open()) {
      assertThat(cpu.home()).isSameAs(NumaHome.NONE);
    }
  }
}
