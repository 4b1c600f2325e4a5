package io.gpunvme.core.path.mmap;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.accel.CpuAccelerator;
import io.gpunvme.core.gpu.FakeGpu;
import io.gpunvme.core.path.DataPath;
import io.gpunvme.core.path.DataPathContract;
import java.nio.file.Path;
import org.junit.jupiter.api.Nested;

/** The mapped file, into host memory and into memory that only copies reach. */
class MmapPathTest {
  @Nested
  class ToHostMemory extends DataPathContract {
    @Override
    protected Accelerator accelerator() {
      return CpuAccelerator.open();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      return MmapPath.open(file, true, accelerator);
    }
  }

  @Nested
  class ToDeviceMemory extends DataPathContract {
    @Override
    protected Accelerator accelerator() {
      return new FakeGpu();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      return MmapPath.open(file, true, accelerator);
    }
  }
}
