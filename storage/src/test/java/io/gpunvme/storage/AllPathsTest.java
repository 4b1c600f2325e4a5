package io.gpunvme.storage;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;

/** On the CPU stand-in: direct, pinned, mmap, and what auto takes. */
class AllPathsTest extends AllPathsContract {
  @Override
  Accelerator accelerator() {
    return CpuAccelerator.open();
  }

  @Override
  StorageOptions direct() {
    return StorageOptions.defaults();
  }

  @Override
  String[] files() {
    return new String[] {"pinned", "mmap", "auto"};
  }
}
