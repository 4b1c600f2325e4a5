package io.gpunvme.gpu.queue;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.cuda.StreamPriority;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.KernelRun;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedDeque;

/** {@link TransferKernel} on a CUDA GPU. Safe for all threads. */
public final class CudaTransferKernel implements TransferKernel {
  private static final int WARP = 32;

  /** One for long transfers, one for short ones. */
  private static final int MOST_RUNNING = 2;

  private final GpuAccelerator accelerator;
  private final GpuModule module;
  private final CudaFunction function;

  /** One for each kernel that may run; none is made later, because that waits for kernels. */
  private final List<CudaStream> streams;

  /** Those on which nothing runs. */
  private final Deque<CudaStream> idle;

  private CudaTransferKernel(
      GpuAccelerator accelerator, GpuModule module, List<CudaStream> streams) {
    this.accelerator = accelerator;
    this.module = module;
    this.streams = streams;
    this.idle = new ConcurrentLinkedDeque<>(streams);
    this.function = module.function("gpunvme_transfer");
  }

  /**
   * Loads the kernel.
   *
   * @throws io.gpunvme.cuda.CudaModuleException if the driver cannot compile it for this GPU
   */
  public static CudaTransferKernel load(GpuAccelerator accelerator) {
    GpuModule module = GpuModule.resource(accelerator, "transfer");
    return CloseAll.orClose(
        () ->
            new CudaTransferKernel(
                accelerator, module, accelerator.betweenKernels(() -> streams(accelerator))),
        module::close);
  }

  private static List<CudaStream> streams(GpuAccelerator accelerator) {
    List<CudaStream> made = new ArrayList<>();
    try {
      while (made.size() < MOST_RUNNING) {
        made.add(accelerator.context().stream(StreamPriority.HIGH));
      }
      return made;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> CloseAll.each(made, CudaStream::close));
      throw e;
    }
  }

  @Override
  public RunningKernel start(MemorySegment args, int blockShift, int queuePairs) {
    CudaStream stream = idle.poll();
    if (stream == null) {
      throw new IllegalStateException(MOST_RUNNING + " transfer kernels run already");
    }
    KernelRun run = accelerator.kernelRun(stream::isIdle);
    try {
      stream.launch(
          function,
          LaunchShape.of(queuePairs, WARP),
          new KernelArguments().addStruct(args).addInt(blockShift));
    } catch (RuntimeException | Error e) {
      CloseAll.after(
          e,
          () -> {
            run.close();
            idle.push(stream);
          });
      throw e;
    }
    return () -> isOver(stream, run);
  }

  private boolean isOver(CudaStream stream, KernelRun run) {
    boolean over = true;
    try {
      over = stream.isIdle();
    } finally {
      // Asked once more only after a failure, and then nothing is launched any more.
      if (over) {
        idle.push(stream);
        run.close();
      }
    }
    return over;
  }

  @Override
  public void close() {
    CloseAll.each(streams, CudaStream::close);
    module.close();
  }
}
