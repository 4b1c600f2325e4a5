package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.testing.CLibrary;
import io.gpunvme.testing.NativeCompiler;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;

/** {@link UserKernel} compiled for the CPU, a thread for each of its threads. */
class KernelStorageTwinTest extends KernelStorageContract {
  private static final String ENTRY =
      """
      extern "C" void twin_copy(const Storage* s, Result* r, unsigned threads, unsigned rounds, unsigned span,
                                unsigned i, unsigned served) {
        blockIdx.x = i;
        blockDim.x = 1;
        (served != 0 ? copy_blocks_served : copy_blocks)(s, r, threads, rounds, span);
      }
      """;

  private final MethodHandle copy =
      new CLibrary(
              NativeCompiler.CPP.library(
                  "user",
                  DeviceSources.CUDA_WORDS + UserKernel.SOURCE + ENTRY,
                  "-O1",
                  DeviceSources.INCLUDE))
          .function(
              "twin_copy",
              void.class,
              long.class,
              long.class,
              int.class,
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
    return 8;
  }

  @Override
  RunningKernel start(
      boolean served, long storage, long results, int threads, int rounds, int span) {
    List<Thread> running = new ArrayList<>();
    for (int i = 0; i < (served ? threads + 1 : threads); i++) {
      int index = i;
      running.add(
          Thread.ofPlatform()
              .daemon()
              .start(
                  () -> {
                    try {
                      copy.invokeExact(
                          storage, results, threads, rounds, span, index, served ? 1 : 0);
                    } catch (Throwable e) {
                      throw new AssertionError(e);
                    }
                  }));
    }
    return () -> running.stream().noneMatch(Thread::isAlive);
  }
}
