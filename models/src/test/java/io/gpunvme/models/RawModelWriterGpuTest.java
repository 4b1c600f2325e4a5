package io.gpunvme.models;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.TestGpu;
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
