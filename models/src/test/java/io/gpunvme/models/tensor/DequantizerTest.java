package io.gpunvme.models.tensor;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.queue.FakeGpu;
import java.util.List;
import org.junit.jupiter.api.Nested;

/** {@link Dequantizer} on the stand-in, and where the CPU does not address the memory. */
class DequantizerTest {
  private abstract static class OnTheCpu extends DequantizerContract {
    @Override
    void dequantize(List<Quantized> tensors) {
      dequantizer.dequantize(tensors, null);
    }
  }

  @Nested
  class OnTheStandIn extends OnTheCpu {
    @Override
    Accelerator open() {
      return CpuAccelerator.open();
    }
  }

  @Nested
  class ByCopies extends OnTheCpu {
    @Override
    Accelerator open() {
      return new FakeGpu();
    }
  }
}
