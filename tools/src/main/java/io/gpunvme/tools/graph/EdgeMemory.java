package io.gpunvme.tools.graph;

import io.gpunvme.gpu.queue.RunningKernel;
import org.jspecify.annotations.Nullable;

/** Edges and weights as kernels have them. For one thread. */
interface EdgeMemory extends AutoCloseable {
  /** What the names of kernels that visit edges end in. */
  String suffix();

  /** What kernels are given for edges. */
  long edges();

  /** What kernels are given for weights; 0: they need none. */
  long weights();

  /** Blocks of kernels for each multiprocessor. */
  int blocks();

  /** Pieces of a frontier from which on a sweep is better. */
  long mostPieces();

  /** Waits for a kernel that visits edges. */
  void await(RunningKernel kernel);

  /** Bytes that kernels have read so far from the SSD. */
  long bytesRead();

  /** The failure of a kernel that could not read an edge. */
  RuntimeException readFailed(long edge, int status);

  /** What kernels have read from the SSD; null: nothing, as there is none. */
  GraphReport.@Nullable Reads reads();

  @Override
  void close();
}
