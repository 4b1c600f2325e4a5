package io.gpunvme.gpu.queue;

import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;

/** {@link UserKernel} compiled at run time for the GPU of this machine. */
@Tag("gpu")
class KernelStorageGpuTest extends KernelStorageContract {
  private static final int BLOCK = 64;

  private CudaFunction copy;
  private CudaFunction copyServed;
  private CudaFunction readRanges;
  private CudaFunction callSet;
  private CudaFunction callSetServed;
  private CudaFunction readTogether;
  private CudaFunction lookUp;
  private CudaStream stream;

  @Override
  Accelerator openAccelerator() {
    GpuAccelerator gpu = TestGpu.open();
    try {
      // Everything is loaded before a kernel runs that others wait for; the accelerator frees it.
      GpuModule module = GpuModule.compile(gpu, "user.cu", UserKernel.SOURCE);
      copy = module.function("copy_blocks");
      copyServed = module.function("copy_blocks_served");
      readRanges = module.function("read_ranges");
      callSet = module.function("call_set");
      callSetServed = module.function("call_set_served");
      readTogether = module.function("read_together");
      lookUp = module.function("look_up");
    } catch (CudaNotFoundException e) {
      gpu.close();
      Assumptions.abort(e.getMessage());
    }
    stream = gpu.context().stream();
    return gpu;
  }

  @Override
  int threads() {
    return 256;
  }

  @Override
  RunningKernel start(
      boolean served, long storage, long results, int threads, int rounds, int span) {
    stream.launch(
        served ? copyServed : copy,
        LaunchShape.of(Math.ceilDiv(threads, BLOCK) + (served ? 1 : 0), BLOCK),
        new KernelArguments()
            .addLong(storage)
            .addLong(results)
            .addInt(threads)
            .addInt(rounds)
            .addInt(span));
    return stream::isIdle;
  }

  @Override
  RunningKernel startRanges(long storage, long file, long reads, int count) {
    stream.launch(
        readRanges,
        LaunchShape.of(Math.ceilDiv(threads(), BLOCK), BLOCK),
        new KernelArguments()
            .addLong(storage)
            .addLong(file)
            .addLong(reads)
            .addInt(count)
            .addInt(threads()));
    return stream::isIdle;
  }

  @Override
  RunningKernel startCalls(int servers, long storage, long set, long calls, int count) {
    stream.launch(
        servers > 0 ? callSetServed : callSet,
        LaunchShape.of(Math.ceilDiv(threads(), BLOCK) + servers, BLOCK),
        new KernelArguments()
            .addLong(storage)
            .addLong(set)
            .addLong(calls)
            .addInt(count)
            .addInt(threads()));
    return stream::isIdle;
  }

  @Override
  int blockThreads() {
    return 2 * BLOCK;
  }

  @Override
  int warpThreads() {
    return 32;
  }

  @Override
  RunningKernel startTogether(long storage, long file, long reads, long seen, int count) {
    stream.launch(
        readTogether,
        LaunchShape.of(count, blockThreads()),
        new KernelArguments().addLong(storage).addLong(file).addLong(reads).addLong(seen));
    return stream::isIdle;
  }

  @Override
  RunningKernel startLookUps(long storage, long directory, long text, long all, int count) {
    stream.launch(
        lookUp,
        LaunchShape.of(Math.ceilDiv(threads(), BLOCK), BLOCK),
        new KernelArguments()
            .addLong(storage)
            .addLong(directory)
            .addLong(text)
            .addLong(all)
            .addInt(count)
            .addInt(threads()));
    return stream::isIdle;
  }
}
