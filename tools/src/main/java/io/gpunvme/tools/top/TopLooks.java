package io.gpunvme.tools.top;

import io.gpunvme.gpu.watch.Processes;
import io.gpunvme.tools.top.ControllerCount.ControllerKey;
import io.gpunvme.tools.top.ControllerCount.QueueKey;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Looks at all controllers again and again: what was done since the look before. For one thread.
 */
public final class TopLooks {
  private static final double NANOS = 1e9;

  private final List<TopTarget> targets;
  private Map<ControllerKey, ControllerCount> before = Map.of();

  /**
   * @param targets what is to be seen; all that there is if empty
   */
  public TopLooks(List<TopTarget> targets) {
    this.targets = List.copyOf(targets);
  }

  /**
   * Asks every process. Of a controller that was not there at the look before, rates are not known.
   */
  public TopLook look() {
    return look(Processes.ask());
  }

  TopLook look(Processes processes) {
    Map<ControllerKey, ControllerCount> now = new LinkedHashMap<>();
    processes.answers().forEach(answer -> ControllerCount.collect(answer, now));
    now.keySet().removeIf(key -> !isWanted(key.device()));
    List<TopController> seen = new ArrayList<>();
    now.forEach((key, count) -> seen.add(controller(key, count, before.get(key))));
    before = now;
    seen.sort(Comparator.comparing(TopController::device).thenComparingLong(TopController::pid));
    return new TopLook(seen, undriven(seen), processes.problems());
  }

  private boolean isWanted(String device) {
    return targets.isEmpty() || targets.stream().anyMatch(target -> target.isMeantBy(device));
  }

  private List<String> undriven(List<TopController> seen) {
    return targets.stream()
        .filter(
            target -> seen.stream().noneMatch(c -> c.isDriven() && target.isMeantBy(c.device())))
        .map(TopTarget::toString)
        .distinct()
        .toList();
  }

  private static TopController controller(
      ControllerKey key, ControllerCount now, @Nullable ControllerCount earlier) {
    double elapsed = earlier == null ? 0 : (now.nanos - earlier.nanos) / NANOS;
    List<TopQueue> queues = new ArrayList<>();
    QueueCount all = new QueueCount();
    boolean hidden = false;
    for (var entry : now.queues.entrySet()) {
      QueueKey queue = entry.getKey();
      QueueCount news = entry.getValue().since(earlier(earlier, queue));
      all.add(news);
      hidden |= news.hidesBytes();
      if (!queue.isWhole() && news.isAtWork()) {
        queues.add(new TopQueue(queue.queue(), queue.initiator(), news.rates(elapsed)));
      }
    }
    if (hidden && now.queues.keySet().stream().noneMatch(QueueKey::isWhole)) {
      // The sum of the others would be less than what was moved.
      all.readBytes = null;
      all.writtenBytes = null;
    }
    queues.sort(Comparator.comparingInt(TopLooks::first).thenComparing(TopQueue::queue));
    return new TopController(
        key.pid(),
        now.program,
        key.side(),
        key.device(),
        now.model,
        queues,
        all.rates(elapsed),
        now.recoveries);
  }

  private static QueueCount earlier(@Nullable ControllerCount count, QueueKey queue) {
    return count == null ? QueueCount.NONE : count.queues.getOrDefault(queue, QueueCount.NONE);
  }

  /** The first number of a queue's identifiers, to sort by. */
  private static int first(TopQueue queue) {
    String digits = queue.queue().split("[^0-9]", 2)[0];
    return digits.isEmpty() || digits.length() > 6 ? Integer.MAX_VALUE : Integer.parseInt(digits);
  }
}
