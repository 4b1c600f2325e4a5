package io.gpunvme.core.gpu;

import io.gpunvme.core.accel.GpuAccelerator;
import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import java.lang.foreign.MemorySegment;

/** {@link TransferKernel} on a CUDA GPU. */
public final class CudaTransferKernel implements TransferKernel {
  private static final int WARP = 32;

  private final GpuModule module;
  private final CudaFunction function;
  private final CudaStream stream;

  private CudaTransferKernel(GpuModule module, CudaStream stream) {
    this.module = module;
    this.stream = stream;
    this.function = module.function("gpunvme_transfer");
  }

  /**
   * Loads the kernel.
   *
   * @throws io.gpunvme.cuda.CudaModuleException if the driver cannot compile it for this GPU
   */
  public static CudaTransferKernel load(GpuAccelerator accelerator) {
    GpuModule module = GpuModule.resource(accelerator, "transfer");
    try {
      return new CudaTransferKernel(module, accelerator.context().stream());
    } catch (RuntimeException e) {
      module.close();
      throw e;
    }
  }

  @Override
  public RunningKernel start(MemorySegment args, int blockShift, int queuePairs) {
    stream.launch(
        function,
        LaunchShape.of(queuePairs, WARP),
        new KernelArguments().addStruct(args).addInt(blockShift));
    return stream::isIdle;
  }

  @Override
  public void close() {
    stream.close();
    module.close();
  }
}
