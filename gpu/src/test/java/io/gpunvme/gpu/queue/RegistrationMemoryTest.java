package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class RegistrationMemoryTest {
  private final CpuAccelerator cpu = CpuAccelerator.open();
  private final NvmeController controller =
      NvmeController.open(
          SimulatedController.create(
              SimConfig.builder().namespace(NamespaceConfig.ram(1 << 20, 512)).build()),
          ControllerOptions.builder().build());

  private static final long KEPT = 1 << 20;

  /** Two of these are kept. */
  private static final long HALF = 512 << 10;

  private final RegistrationMemory memory =
      new RegistrationMemory(controller.function(), cpu, KEPT);

  @AfterEach
  void close() {
    memory.close();
    cpu.close();
    controller.close();
  }

  @Test
  void whatIsGivenBackIsUsedAgain() {
    DmaBuffer lists = memory.lists(300_000);
    DeviceBuffer description = memory.description(9000);
    memory.give(lists);
    memory.give(description);
    assertThat(memory.lists(280_000)).isSameAs(lists);
    assertThat(memory.description(100)).isSameAs(description);
    memory.give(lists);
    memory.give(description);
  }

  @Test
  void aLittleDoesNotTakeMuch() {
    DmaBuffer much = memory.lists(KEPT);
    memory.give(much);
    DmaBuffer little = memory.lists(4096);
    assertThat(little).isNotSameAs(much);
    DmaBuffer more = memory.lists(2 * KEPT);
    assertThat(more).isNotSameAs(much);
    memory.give(little);
    memory.give(more);
  }

  @Test
  void moreThanWantedIsFreed() {
    DeviceBuffer[] all = {
      memory.description(HALF), memory.description(HALF), memory.description(HALF),
    };
    for (DeviceBuffer one : all) {
      memory.give(one);
    }
    assertThat(memory.description(HALF)).isSameAs(all[0]);
    assertThat(memory.description(HALF)).isSameAs(all[1]);
    DeviceBuffer another = memory.description(HALF);
    assertThat(another).isNotSameAs(all[2]);
    another.close();
    all[0].close();
    all[1].close();
  }
}
