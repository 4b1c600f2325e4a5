package io.gpunvme.tools.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.GpuModule;
import io.gpunvme.storage.layer.LayerLoader;
import io.gpunvme.storage.layer.LoadedLayer;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The work is done by kernels in a stream, which waits for each layer. */
final class GpuLayerWork implements LayerWork {
  /** In {@code reads.cu}. */
  private static final String KERNEL = "gpunvme_bench_layer";

  /** Fewer blocks than a GPU has multiprocessors: reads need some. */
  private static final int KERNEL_BLOCKS = 48;

  private static final int KERNEL_THREADS = 256;

  private final List<AutoCloseable> open = new ArrayList<>();
  private final CudaFunction kernel;
  private final CudaStream stream;
  private final DeviceBuffer sums;
  private final int count;

  /**
   * @param count of sums
   */
  GpuLayerWork(GpuAccelerator accelerator, int count) {
    this.count = count;
    try {
      kernel = kept(GpuModule.resource(accelerator, "reads")).function(KERNEL);
      stream = kept(accelerator.context().stream());
      sums = kept(accelerator.allocate((long) count * Long.BYTES));
      clear();
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::close);
      throw e;
    }
  }

  private <T extends AutoCloseable> T kept(T part) {
    open.add(part);
    return part;
  }

  private void clear() {
    sums.copyFromHost(MemorySegment.ofArray(new long[count]), 0);
  }

  @Override
  public LoadedLayer next(LayerLoader loader) {
    return loader.next(stream);
  }

  @Override
  public void with(LoadedLayer layer, int sum, long nanos) {
    stream.launch(
        kernel,
        LaunchShape.of(KERNEL_BLOCKS, KERNEL_THREADS),
        new KernelArguments()
            .addLong(layer.deviceAddress())
            .addLong(layer.layer().bytes() / Long.BYTES)
            .addLong(layer.layer().offset() / Long.BYTES)
            .addLong(nanos)
            .addLong(sums.deviceAddress() + (long) sum * Long.BYTES));
  }

  @Override
  public void release(LoadedLayer layer) {
    layer.release(stream);
  }

  @Override
  public void await() {
    stream.synchronize();
  }

  @Override
  public long[] takeSums() {
    long[] taken = new long[count];
    sums.copyToHost(0, MemorySegment.ofArray(taken));
    clear();
    return taken;
  }

  @Override
  public void describe(Map<String, Object> conditions) {
    conditions.put("work_by", "a kernel");
    conditions.put("kernel_blocks", KERNEL_BLOCKS);
  }

  @Override
  public void close() {
    CloseAll.newestFirst(open);
  }
}
