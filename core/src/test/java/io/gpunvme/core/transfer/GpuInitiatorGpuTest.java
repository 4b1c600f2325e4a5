package io.gpunvme.core.transfer;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.accel.GpuAccelerator;
import io.gpunvme.core.accel.TestGpu;
import io.gpunvme.core.gpu.CudaTransferKernel;
import io.gpunvme.core.gpu.TransferKernel;
import org.junit.jupiter.api.Tag;

/** On a GPU. */
@Tag("gpu")
class GpuInitiatorGpuTest extends GpuInitiatorContract {
  @Override
  Accelerator openAccelerator() {
    return TestGpu.open();
  }

  @Override
  TransferKernel loadKernel(Accelerator on) {
    return CudaTransferKernel.load((GpuAccelerator) on);
  }
}
