package io.gpunvme.core.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.core.accel.CpuAccelerator;
import io.gpunvme.core.accel.DeviceBuffer;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.sim.NamespaceConfig;
import io.gpunvme.nvme.sim.SimConfig;
import io.gpunvme.nvme.sim.SimulatedController;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class BufferRegistrationsTest {
  private final CpuAccelerator cpu = CpuAccelerator.open();
  private final NvmeController controller =
      NvmeController.open(
          SimulatedController.create(
              SimConfig.builder().namespace(NamespaceConfig.ram(1 << 20, 512)).build()),
          ControllerOptions.builder().build());
  private final BufferRegistrations registrations = new BufferRegistrations(controller, cpu);

  @AfterEach
  void close() {
    registrations.close();
    cpu.close();
    controller.close();
  }

  private List<DeviceBuffer> buffers(int count) {
    List<DeviceBuffer> all = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      all.add(cpu.allocate(1 << 16));
    }
    return all;
  }

  @Test
  void theLastOnesAreKept() {
    List<DeviceBuffer> all = buffers(BufferRegistrations.MOST + 1);
    BufferRegistration first = registrations.of(all.getFirst());
    for (DeviceBuffer b : all.subList(1, BufferRegistrations.MOST)) {
      registrations.of(b);
    }
    assertThat(registrations.of(all.getFirst())).isSameAs(first);
    // The first was used last, so the second one gives way.
    BufferRegistration second = registrations.of(all.get(1));
    registrations.of(all.getFirst());
    registrations.of(all.getLast());
    assertThat(registrations.of(all.getFirst())).isSameAs(first);
    assertThat(registrations.of(all.get(1))).isSameAs(second);
    assertThat(registrations.of(all.get(2))).isNotSameAs(second);
    all.forEach(DeviceBuffer::close);
  }

  @Test
  void freedBuffersAreForgotten() {
    List<DeviceBuffer> all = buffers(2);
    registrations.of(all.getFirst());
    registrations.of(all.getLast());
    all.getFirst().close();
    assertThatThrownBy(() -> registrations.of(all.getFirst()))
        .isInstanceOf(IllegalStateException.class);
    registrations.close();
    // Nobody is told any more.
    all.getLast().close();
  }
}
