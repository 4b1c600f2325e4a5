package io.gpunvme.core.weights;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.accel.TestGpu;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** Raw models by way of GPU memory. */
@Tag("gpu")
@Timeout(120)
class RawModelWriterGpuTest extends RawModelWriterTest {
  @Override
  Accelerator open() {
    return TestGpu.open();
  }
}
