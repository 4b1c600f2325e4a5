package io.gpunvme.models.tensor;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.queue.FakeGpu;
import org.junit.jupiter.api.Nested;

/** {@link TensorKernels} on the stand-in, and where the CPU does not address the memory. */
class TensorKernelsTest {
  private static final int ROUNDS = 150;

  @Nested
  class OnTheStandIn extends TensorKernelsContract {
    @Override
    Accelerator open() {
      return CpuAccelerator.open();
    }

    @Override
    int rounds() {
      return ROUNDS;
    }
  }

  @Nested
  class ByCopies extends TensorKernelsContract {
    @Override
    Accelerator open() {
      return new FakeGpu();
    }

    @Override
    int rounds() {
      return ROUNDS;
    }
  }
}
