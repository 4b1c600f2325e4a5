package io.gpunvme.models;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.TestGpu;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** Weights into GPU memory. */
@Tag("gpu")
@Timeout(120)
class WeightsGpuTest extends WeightsContract {
  @Override
  Accelerator accelerator() {
    return TestGpu.open();
  }
}
