package io.gpunvme.tools.bench;

import static io.gpunvme.gpu.queue.DeviceLayout.getLong;

import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Buffers whose 8-byte words are to be the hashes of their positions ({@link
 * BlockPattern#hashWords}); the GPU looks at every word. For one thread.
 *
 * @param kernels of {@code reads.cu}; stay the caller's
 */
record GpuWords(GpuAccelerator accelerator, BenchKernels kernels) implements SetBench.Words {
  /** In {@code reads.cu}. */
  static final String CHECK = "gpunvme_bench_check";

  private static final int CHECK_BLOCKS = 1024;
  private static final int CHECK_THREADS = 256;

  @Override
  public void clear(DeviceBuffer target) {
    try (CudaStream stream = accelerator.context().stream()) {
      stream.fillAsync(target.deviceAddress(), (byte) 0, target.size());
      stream.synchronize();
    }
  }

  @Override
  public void check(String id, DeviceBuffer target) {
    long words = target.size() / Long.BYTES;
    try (DeviceBuffer wrong = accelerator.allocate(Long.BYTES);
        Arena arena = Arena.ofConfined()) {
      KernelArguments args =
          new KernelArguments()
              .addLong(target.deviceAddress())
              .addLong(words)
              .addLong(wrong.deviceAddress());
      KernelDeadline.await(kernels.start(CHECK, CHECK_BLOCKS, CHECK_THREADS, args), id, () -> {});
      MemorySegment count = arena.allocate(Long.BYTES, Long.BYTES);
      wrong.copyToHost(0, count);
      if (getLong(count, 0) != 0) {
        throw new BenchException(
            "%s: %d of %d words are wrong".formatted(id, getLong(count, 0), words));
      }
    }
  }
}
