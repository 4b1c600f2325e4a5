package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.testing.CLibrary;
import io.gpunvme.testing.NativeCompiler;
import java.lang.invoke.MethodHandle;

/** {@link ArrayKernel} compiled for the CPU, a thread for each of its threads. */
class PageCacheTwinTest extends PageCacheContract {
  private static final String ENTRY =
      """
      extern "C" void twin_use_array(const DeviceArray* a, Op* ops, unsigned count, unsigned threads, unsigned i,
                                     unsigned served) {
        blockIdx.x = i;
        blockDim.x = 1;
        (served != 0 ? use_array_served : use_array)(a, ops, count, threads);
      }
      """;

  private final CLibrary library =
      new CLibrary(
          NativeCompiler.CPP.library(
              "arrays",
              DeviceSources.CUDA_WORDS + ArrayKernel.SOURCE + ENTRY,
              "-O1",
              "-Wno-missing-field-initializers",
              DeviceSources.INCLUDE));
  private final MethodHandle use =
      library.function(
          "twin_use_array",
          void.class,
          long.class,
          long.class,
          int.class,
          int.class,
          int.class,
          int.class);

  @Override
  Accelerator openAccelerator() {
    return new FakeGpu();
  }

  @Override
  int threads() {
    return 6;
  }

  @Override
  RunningKernel start(int servers, long array, long ops, int count, int threads) {
    return TwinThreads.start(
        threads + servers,
        i -> {
          use.invokeExact(array, ops, count, threads, i, servers);
        });
  }
}
