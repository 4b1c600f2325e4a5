package io.gpunvme.storage;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** Into GPU memory, commands by kernels; cuFile too where it takes the file. */
@Tag("gpu")
@Timeout(240)
class AllPathsGpuTest extends AllPathsContract {
  @Override
  Accelerator accelerator() {
    return TestGpu.open();
  }

  @Override
  StorageOptions direct() {
    return StorageOptions.defaults()
        .with(InitiatorOptions.defaults().with(InitiatorKind.GPU, Placement.VRAM_DATA));
  }

  @Override
  String[] files() {
    return new String[] {"pinned", "mmap", "cufile", "auto"};
  }
}
