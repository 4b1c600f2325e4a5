package io.gpunvme.nvme.driver;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What a controller's I/O queue pairs have done since it was opened, those included that are
 * deleted by now. Safe for all threads; reading waits for nobody, whatever the controller does.
 */
public final class ControllerTraffic {
  private final List<QueueTraffic> all = new CopyOnWriteArrayList<>();
  private final AtomicLong recoveries = new AtomicLong();

  ControllerTraffic() {}

  /** One for each queue pair, or for each set of them that kernels drive together. */
  public List<QueueTraffic> queues() {
    return List.copyOf(all);
  }

  /** How often queue pairs had to climb the recovery ladder. */
  public long recoveries() {
    return recoveries.get();
  }

  /**
   * Begins to count for queue pairs that kernels drive together. Whoever waits for the kernels
   * counts, and closes it with the queue pairs.
   *
   * @param pairs at least one
   */
  public QueueTraffic ofKernels(List<ExternalQueuePair> pairs, QueueTraffic.Kind kind) {
    return add(new QueueTraffic(identifiers(pairs), kind));
  }

  private static String identifiers(List<ExternalQueuePair> pairs) {
    List<Integer> ids = new ArrayList<>(pairs.stream().map(ExternalQueuePair::qid).toList());
    Collections.sort(ids);
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < ids.size(); ) {
      int first = ids.get(i);
      int last = first;
      while (++i < ids.size() && ids.get(i) == last + 1) {
        last++;
      }
      text.append(text.isEmpty() ? "" : ",").append(first);
      if (last > first) {
        text.append('-').append(last);
      }
    }
    return text.toString();
  }

  /** Takes the place of one with the same identifiers, and goes on from its numbers. */
  synchronized QueueTraffic add(QueueTraffic traffic) {
    for (int i = 0; i < all.size(); i++) {
      QueueTraffic earlier = all.get(i);
      if (earlier.kind() == traffic.kind() && earlier.queues().equals(traffic.queues())) {
        traffic.goOnFrom(earlier.counts());
        all.set(i, traffic);
        return traffic;
      }
    }
    all.add(traffic);
    return traffic;
  }

  void recovered() {
    recoveries.incrementAndGet();
  }
}
