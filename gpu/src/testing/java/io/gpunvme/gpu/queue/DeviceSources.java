package io.gpunvme.gpu.queue;

import java.nio.file.Path;

/** The device library and the kernels, as compilers for the CPU need them. */
public final class DeviceSources {
  /** The folder of {@code gpunvme} and {@code kernels}. */
  public static final Path FOLDER = Path.of("../gpu/src/main/cuda").toAbsolutePath();

  /** The option that finds them. */
  public static final String INCLUDE = "-I" + FOLDER;

  /**
   * What CUDA C++ has and C++ has not, of each thread. A kernel that is included after it finds a
   * grid of one block of one thread. What the threads of a block share is each thread's own, so
   * such a block must have one thread.
   */
  public static final String CUDA_WORDS =
      """
      #define __global__
      #define __device__
      #define __launch_bounds__(...)
      #define __maxnreg__(...)
      #define __shared__ static thread_local
      [[maybe_unused]] static void __syncthreads() {}
      struct Dim { unsigned x; };
      [[maybe_unused]] static thread_local Dim blockIdx, threadIdx, blockDim = {1}, gridDim = {1};
      """;

  private DeviceSources() {}
}
