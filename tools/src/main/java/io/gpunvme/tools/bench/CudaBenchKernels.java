package io.gpunvme.tools.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.FunctionAttribute;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.GpuModule;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** {@link BenchKernels} on a CUDA GPU, in a stream of their own. For one thread. */
final class CudaBenchKernels implements BenchKernels {
  private static final double NANOS_PER_MILLI = TimeUnit.MILLISECONDS.toNanos(1);

  private final GpuModule module;
  private final Map<String, CudaFunction> functions = new HashMap<>();
  private final CudaStream stream;
  private final CudaEvent begin;
  private final CudaEvent end;

  private CudaBenchKernels(GpuModule module, GpuAccelerator accelerator, List<String> kernels) {
    this.module = module;
    // All of them now: loading one may wait for a kernel that runs, and a responder waits for us.
    kernels.forEach(kernel -> functions.put(kernel, module.function(kernel)));
    stream = accelerator.context().stream();
    begin = accelerator.context().timingEvent();
    end = accelerator.context().timingEvent();
  }

  /**
   * Loads a file of kernels.
   *
   * @param name as of its file, e.g. {@code bench}
   * @param kernels of them, those that will be run
   */
  static CudaBenchKernels load(GpuAccelerator accelerator, String name, List<String> kernels) {
    GpuModule module = GpuModule.resource(accelerator, name);
    return CloseAll.orClose(
        () -> new CudaBenchKernels(module, accelerator, kernels), module::close);
  }

  @Override
  public LaunchedKernel start(String kernel, int blocks, int threads, MemorySegment args) {
    return start(kernel, blocks, threads, new KernelArguments().addStruct(args));
  }

  @Override
  public LaunchedKernel start(String kernel, int blocks, int threads, KernelArguments args) {
    CudaFunction function = function(kernel);
    stream.record(begin);
    stream.launch(function, LaunchShape.of(blocks, threads), args);
    stream.record(end);
    return new Run();
  }

  private final class Run implements LaunchedKernel {
    @Override
    public boolean isOver() {
      return end.isDone();
    }

    @Override
    public long nanos() {
      return Math.round(end.millisecondsSince(begin) * NANOS_PER_MILLI);
    }
  }

  @Override
  public int registers(String kernel) {
    return function(kernel).attribute(FunctionAttribute.NUM_REGS);
  }

  private CudaFunction function(String kernel) {
    CudaFunction function = functions.get(kernel);
    if (function == null) {
      throw new IllegalArgumentException(kernel + " was not loaded");
    }
    return function;
  }

  @Override
  public void close() {
    end.close();
    begin.close();
    stream.close();
    module.close();
  }
}
