package io.gpunvme.models;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.storage.layer.Layer;
import io.gpunvme.storage.layer.LayerLoader;
import io.gpunvme.storage.layer.LayerOptions;
import io.gpunvme.storage.path.PathKind;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * How fast layers are read, by a loader that reads some of those that a plan streams.
 *
 * @param bytes of the layers that were timed
 * @param nanos that they took
 * @param path the paths of the bytes, as the storage names them, e.g. {@code pinned}
 */
public record LayerRate(long bytes, long nanos, String path) {
  /** Layers are timed until there are this many bytes, or no more layers. */
  private static final long ENOUGH = 512L << 20;

  private static final double NANOS_PER_SECOND = 1e9;

  /**
   * Reads layers into a ring as the plan has it. The first layer is not timed, unless it is the
   * only one: meanwhile paths are opened and chosen. Writes nothing; keeps no memory.
   *
   * @param layers of these weights
   * @param plan of these layers, that streams some of them
   * @throws InvalidRequestException if it streams none
   * @throws io.gpunvme.storage.layer.LayerException if a layer cannot be read
   * @throws RuntimeException of the accelerator, if the ring does not fit into its memory
   */
  public static LayerRate measure(Weights weights, ModelLayers layers, StreamPlan plan) {
    Set<Integer> resident = Set.copyOf(plan.resident());
    List<Integer> streamed =
        IntStream.range(0, plan.layers()).filter(i -> !resident.contains(i)).boxed().toList();
    if (streamed.isEmpty()) {
      throw new InvalidRequestException("no layer is streamed, so there is nothing to measure");
    }
    List<Layer> timed = new ArrayList<>();
    long bytes = 0;
    for (int i : streamed.size() == 1 ? streamed : streamed.subList(1, streamed.size())) {
      if (bytes < ENOUGH) {
        Layer layer = layers.layer(weights, i);
        timed.add(layer);
        bytes += layer.bytes();
      }
    }
    try (LayerLoader loader =
        weights.layers(plan.slotBytes(), plan.slots(), LayerOptions.defaults())) {
      pass(loader, List.of(layers.layer(weights, streamed.getFirst())));
      long begin = System.nanoTime();
      pass(loader, timed);
      long nanos = System.nanoTime() - begin;
      String paths =
          loader.paths().keySet().stream()
              .map(PathKind::toString)
              .collect(Collectors.joining(", "));
      return new LayerRate(bytes, nanos, paths);
    }
  }

  private static void pass(LayerLoader loader, List<Layer> layers) {
    loader.prefetch(layers);
    for (int i = 0; i < layers.size(); i++) {
      loader.next().release();
    }
  }

  /** Bytes a second. */
  public double bytesPerSecond() {
    return bytes * NANOS_PER_SECOND / Math.max(1, nanos);
  }
}
