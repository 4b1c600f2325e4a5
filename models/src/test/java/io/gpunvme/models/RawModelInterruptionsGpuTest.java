package io.gpunvme.models;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.TestGpu;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** Interrupted on the way through GPU memory. */
@Tag("gpu")
@Timeout(120)
class RawModelInterruptionsGpuTest extends RawModelInterruptionsTest {
  @Override
  Accelerator open() {
    return TestGpu.open();
  }
}
