package io.gpunvme.core.tensor;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.accel.CpuAccelerator;
import io.gpunvme.core.gpu.FakeGpu;
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
