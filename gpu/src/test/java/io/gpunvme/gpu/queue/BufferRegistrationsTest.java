package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.MemorySegment;
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

  private BufferRegistration of(DeviceBuffer buffer) {
    try (BufferRegistrations.Use use = registrations.use(buffer)) {
      return use.registration();
    }
  }

  @Test
  void theLastOnesAreKept() {
    List<DeviceBuffer> all = buffers(BufferRegistrations.MOST + 1);
    List<BufferRegistration> made =
        all.subList(0, BufferRegistrations.MOST).stream().map(this::of).toList();
    // The first is used again, so the second one gives way.
    assertThat(of(all.getFirst())).isSameAs(made.getFirst());
    of(all.getLast());
    assertThat(of(all.getFirst())).isSameAs(made.getFirst());
    assertThat(of(all.get(2))).isSameAs(made.get(2));
    assertThat(of(all.get(1))).isNotSameAs(made.get(1));
    all.forEach(DeviceBuffer::close);
  }

  @Test
  void thoseInUseStay() {
    List<DeviceBuffer> all = buffers(BufferRegistrations.MOST + 3);
    BufferRegistrations.Use first = registrations.use(all.getFirst());
    all.subList(1, all.size()).forEach(this::of);
    assertThat(of(all.getFirst())).isSameAs(first.registration());
    List<BufferRegistrations.Use> uses = new ArrayList<>();
    all.forEach(b -> uses.add(registrations.use(b)));
    assertThat(of(all.getFirst())).isSameAs(first.registration());
    uses.forEach(BufferRegistrations.Use::close);
    first.close();
    all.subList(1, all.size()).forEach(this::of);
    assertThat(of(all.getFirst())).isNotSameAs(first.registration());
    all.forEach(DeviceBuffer::close);
  }

  @Test
  void freedBuffersAreForgotten() {
    List<DeviceBuffer> all = buffers(2);
    all.forEach(this::of);
    all.getFirst().close();
    assertThatThrownBy(() -> of(all.getFirst())).isInstanceOf(IllegalStateException.class);
    registrations.close();
    // Nobody is told any more.
    all.getLast().close();
  }

  @Test
  void aBufferInUseKeepsItsMemoryAndItsDescription() {
    DeviceBuffer buffer = buffers(1).getFirst();
    MemorySegment memory = buffer.segment();
    BufferRegistrations.Use first = registrations.use(buffer);
    BufferRegistrations.Use second = registrations.use(buffer);
    buffer.close();
    assertThatThrownBy(() -> registrations.use(buffer)).isInstanceOf(IllegalStateException.class);
    first.close();
    assertThat(memory.scope().isAlive()).as("in use").isTrue();
    second.close();
    assertThat(memory.scope().isAlive()).isFalse();
  }
}
