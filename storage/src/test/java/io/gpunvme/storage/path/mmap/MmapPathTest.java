package io.gpunvme.storage.path.mmap;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.DataPathContract;
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
