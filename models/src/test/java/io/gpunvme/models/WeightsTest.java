package io.gpunvme.models;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.queue.FakeGpu;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

/** Weights into the CPU stand-in's memory, and into one that only copies reach. */
class WeightsTest {
  @Nested
  class HostMemory extends WeightsContract {
    @Override
    Accelerator accelerator() {
      return CpuAccelerator.open();
    }
  }

  @Nested
  class DeviceMemory extends WeightsContract {
    @Override
    Accelerator accelerator() {
      return new FakeGpu();
    }
  }

  @Test
  void layersAreOrderedByTheirNumbers() {
    List<String> names =
        new ArrayList<>(
            List.of(
                "b.10.x", "b.9.x", "a", "b.9.w", "b.010.x", "b", "b.9", "c.99999999999999999999"));
    names.sort(new LayerOrder());
    assertThat(names)
        .containsExactly(
            "a", "b", "b.9", "b.9.w", "b.9.x", "b.010.x", "b.10.x", "c.99999999999999999999");
  }
}
