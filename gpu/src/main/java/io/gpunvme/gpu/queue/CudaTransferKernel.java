package io.gpunvme.gpu.queue;

import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.cuda.StreamPriority;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.KernelRun;
import java.lang.foreign.MemorySegment;

/** {@link TransferKernel} on a CUDA GPU. */
public final class CudaTransferKernel implements TransferKernel {
  private static final int WARP = 32;

  private final GpuAccelerator accelerator;
  private final GpuModule module;
  private final CudaFunction function;
  private final CudaStream stream;

  private CudaTransferKernel(GpuAccelerator accelerator, GpuModule module, CudaStream stream) {
    this.accelerator = accelerator;
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
      return new CudaTransferKernel(
          accelerator,
          module,
          accelerator.betweenKernels(() -> accelerator.context().stream(StreamPriority.HIGH)));
    } catch (RuntimeException e) {
      module.close();
      throw e;
    }
  }

  @Override
  public RunningKernel start(MemorySegment args, int blockShift, int queuePairs) {
    KernelRun run = accelerator.kernelRun();
    try {
      stream.launch(
          function,
          LaunchShape.of(queuePairs, WARP),
          new KernelArguments().addStruct(args).addInt(blockShift));
    } catch (RuntimeException e) {
      run.close();
      throw e;
    }
    return () -> isOver(run);
  }

  private boolean isOver(KernelRun run) {
    boolean over = true;
    try {
      over = stream.isIdle();
    } finally {
      if (over) {
        run.close();
      }
    }
    return over;
  }

  @Override
  public void close() {
    stream.close();
    module.close();
  }
}
