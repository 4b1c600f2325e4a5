package io.gpunvme.storage.path.mmap;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.DataPathContract;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

@Tag("gpu")
@Timeout(120)
class MmapPathGpuTest extends DataPathContract {
  @Override
  protected Accelerator accelerator() {
    return TestGpu.open();
  }

  @Override
  protected DataPath open(Path file, Accelerator accelerator) {
    return MmapPath.open(file, true, accelerator);
  }
}
