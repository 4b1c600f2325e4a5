package io.gpunvme.cli;

import io.gpunvme.models.LayerExperts;
import io.gpunvme.models.ModelLayers;
import io.gpunvme.models.StreamPlan;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;

/**
 * The experts that a token takes in the layers that are streamed.
 *
 * @param layers those that have experts
 */
record ChosenExperts(List<OfLayer> layers) {
  /**
   * Those of a layer.
   *
   * @param layer its number, from 0
   * @param count how many there are
   * @param bytes of each
   * @param least how many are chosen at least
   * @param most how many at most: more than {@code least} if nobody knows how many
   */
  record OfLayer(int layer, int count, long bytes, int least, int most) {}

  static ChosenExperts of(ModelLayers layers, StreamPlan plan) {
    Set<Integer> resident = Set.copyOf(plan.resident());
    List<OfLayer> all = new ArrayList<>();
    for (int i = 0; i < plan.layers(); i++) {
      LayerExperts experts = resident.contains(i) ? null : layers.experts(i);
      if (experts != null) {
        int count = experts.count();
        int least = Math.min(count, layers.expertsPerToken().orElse(1));
        int most = Math.min(count, layers.expertsPerToken().orElse(count));
        all.add(new OfLayer(i, count, experts.bytes(), least, most));
      }
    }
    return new ChosenExperts(all);
  }

  /** Bytes for a token, at least. */
  long least() {
    return layers.stream().mapToLong(l -> l.least * l.bytes).sum();
  }

  /** Bytes for a token, at most. */
  long most() {
    return layers.stream().mapToLong(l -> l.most * l.bytes).sum();
  }

  /** Bytes of all of them. */
  long all() {
    return layers.stream().mapToLong(l -> l.count * l.bytes).sum();
  }

  /** The layer whose experts have most bytes together. */
  OfLayer longest() {
    return layers.stream().max(Comparator.comparingLong(l -> l.count * l.bytes)).orElseThrow();
  }

  /** Whether all layers have as many, of the same size. */
  boolean isEven() {
    OfLayer longest = longest();
    return layers.stream().allMatch(l -> l.count == longest.count && l.bytes == longest.bytes);
  }
}
