package io.gpunvme.gpu.accel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaDevice;
import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.ffi.NumaCalls;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.testing.FakeMachine;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** On which NUMA node a GPU's pinned memory is: made-up nodes, but for node 0. */
class GpuHomeTest {
  private final CudaDevice device = FakeDriver.fresh().load().device(0);

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

  @Test
  void pinningLeavesTheThreadAsItWas() {
    try {
      Assumptions.assumeTrue(NumaCalls.hasUsualMemory(), "this process has a memory policy");
    } catch (PosixException e) {
      Assumptions.abort("this process may have no memory policy: " + e.getMessage());
    }
    try (GpuAccelerator gpu = open(Map.of())) {
      gpu.allocatePinned(1).close();
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
