package io.gpunvme.gpu.transfer;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.gpu.queue.TransferKernel;
import io.gpunvme.gpu.queue.TwinKernel;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;

/** The real kernel, compiled for the CPU, in memory that only looks like a GPU's. */
class GpuInitiatorTwinTest extends GpuInitiatorContract {
  @TempDir static Path folder;
  private static Path library;

  @BeforeAll
  static void compile() throws Exception {
    library = TwinKernel.compile(folder);
  }

  @Override
  Accelerator openAccelerator() {
    return new FakeGpu();
  }

  @Override
  TransferKernel loadKernel(Accelerator on) {
    return TwinKernel.load(library);
  }
}
