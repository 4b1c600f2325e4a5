package io.gpunvme.tools.bench;

import io.gpunvme.storage.layer.LayerLoader;
import io.gpunvme.storage.layer.LoadedLayer;
import java.util.Map;

/**
 * What a program does with layers, as a benchmark of them plays it: it looks at every word of a
 * layer, and takes a while. For one thread.
 */
interface LayerWork extends AutoCloseable {
  /** The next layer, as this work takes it: whoever works waits until it is there. */
  LoadedLayer next(LayerLoader loader);

  /**
   * Works with a layer, or begins to: its {@link LayerSums sum} is added to one of the sums.
   *
   * @param sum which
   * @param nanos takes as long at least
   */
  void with(LoadedLayer layer, int sum, long nanos);

  /** Gives a layer's slot back when the work with it is over. */
  void release(LoadedLayer layer);

  /** Waits until all work is over. */
  void await();

  /** The sums, which are 0 again then. No work is under way. */
  long[] takeSums();

  /** What the work is done by. */
  void describe(Map<String, Object> conditions);

  @Override
  void close();
}
