package io.gpunvme.storage;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.TestGpu;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** The same into memory that is pinned for a GPU, by commands of its kernels. */
@Tag("gpu")
@Timeout(120)
class StorageReaderGpuTest extends StorageReaderTest {
  @Override
  Accelerator accelerator() {
    return TestGpu.open();
  }
}
