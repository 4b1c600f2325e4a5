package io.gpunvme.tools.bench;

import io.gpunvme.gpu.accel.GpuAccelerator;

/**
 * The results of {@link CacheBench} whose pages are in GPU memory, beside host memory: on an SSD of
 * their own. CUDA copies move the pages of an embedded one. A GPU has few queues for streams, so a
 * controller with many threads would have copies wait behind the kernel that waits for them.
 */
final class TierBench implements AutoCloseable {
  private final CacheBench bench;

  /**
   * @param workers threads of the controller, a few
   */
  TierBench(GpuAccelerator accelerator, int workers) {
    bench = new CacheBench(accelerator, CacheBench.SKEWED_BYTES, workers);
  }

  Measurement measure(String id, Repetitions repetitions) {
    return bench.measure(id, repetitions);
  }

  @Override
  public void close() {
    bench.close();
  }
}
