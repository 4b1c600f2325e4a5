package io.gpunvme.tools.bench;

import io.gpunvme.cuda.KernelArguments;
import java.lang.foreign.MemorySegment;

/** The kernels of one file, run one at a time. */
interface BenchKernels extends AutoCloseable {
  /**
   * Starts a kernel.
   *
   * @param kernel its name
   * @param threads of each block
   * @param args its one parameter, a structure; copied
   */
  LaunchedKernel start(String kernel, int blocks, int threads, MemorySegment args);

  /** Starts a kernel that has other parameters. */
  LaunchedKernel start(String kernel, int blocks, int threads, KernelArguments args);

  /** Registers of a thread; 0 if that means nothing here. */
  int registers(String kernel);

  @Override
  void close();
}
