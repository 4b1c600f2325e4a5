package io.gpunvme.tools.bench;

import io.gpunvme.storage.layer.LayerLoader;
import io.gpunvme.storage.layer.LoadedLayer;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Map;

/** The work is done by threads of the CPU. */
final class HostLayerWork implements LayerWork {
  private final long[] sums;

  /**
   * @param count of sums
   */
  HostLayerWork(int count) {
    sums = new long[count];
  }

  @Override
  public LoadedLayer next(LayerLoader loader) {
    return loader.next();
  }

  @Override
  public void with(LoadedLayer layer, int sum, long nanos) {
    long begin = System.nanoTime();
    MemorySegment words =
        layer.buffer().segment().asSlice(layer.bufferOffset(), layer.layer().bytes());
    sums[sum] += LayerSums.of(words, layer.layer().offset() / Long.BYTES);
    while (System.nanoTime() - begin < nanos) {
      Thread.onSpinWait();
    }
  }

  @Override
  public void release(LoadedLayer layer) {
    layer.release();
  }

  @Override
  public void await() {}

  @Override
  public long[] takeSums() {
    long[] taken = sums.clone();
    Arrays.fill(sums, 0);
    return taken;
  }

  @Override
  public void describe(Map<String, Object> conditions) {
    conditions.put("work_by", "CPU");
  }

  @Override
  public void close() {}
}
