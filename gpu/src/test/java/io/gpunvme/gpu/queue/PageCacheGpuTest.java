package io.gpunvme.gpu.queue;

import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.cuda.Nvrtc;
import io.gpunvme.cuda.NvrtcSource;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;

/** {@link ArrayKernel} compiled at run time for the GPU of this machine. */
@Tag("gpu")
class PageCacheGpuTest extends PageCacheContract {
  private static final int BLOCK = 64;

  private static byte[] ptx = {};

  private CudaFunction use;
  private CudaFunction useServed;
  private CudaStream stream;

  @Override
  Accelerator openAccelerator() {
    GpuAccelerator gpu = TestGpu.open();
    try {
      GpuModule module = GpuModule.load(gpu, ptx());
      use = module.function("use_array");
      useServed = module.function("use_array_served");
    } catch (CudaNotFoundException e) {
      gpu.close();
      Assumptions.abort(e.getMessage());
    }
    stream = gpu.context().stream();
    return gpu;
  }

  /** Compiled once for all tests: it takes seconds. */
  private static synchronized byte[] ptx() {
    if (ptx.length == 0) {
      NvrtcSource source = new NvrtcSource("arrays.cu", ArrayKernel.SOURCE, GpuModule.headers());
      List<String> options = List.of("--gpu-architecture=compute_75", "--std=c++17");
      ptx = Nvrtc.load().compile(source, options).ptx();
    }
    return ptx;
  }

  @Override
  int threads() {
    return 512;
  }

  @Override
  RunningKernel start(int servers, long array, long ops, int count, int threads) {
    stream.launch(
        servers != 0 ? useServed : use,
        LaunchShape.of(Math.ceilDiv(threads, BLOCK) + servers, BLOCK),
        new KernelArguments().addLong(array).addLong(ops).addInt(count).addInt(threads));
    return stream::isIdle;
  }
}
