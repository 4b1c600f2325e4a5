package io.gpunvme.tools.top;

import io.gpunvme.gpu.watch.Metric;
import io.gpunvme.gpu.watch.Processes.Answer;
import io.gpunvme.gpu.watch.Sample;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/** Everything that one process told of one controller at one moment. */
final class ControllerCount {
  /** Whose it is, the same at each look. */
  record ControllerKey(long pid, String side, String number, String device) {
    static ControllerKey of(long pid, Sample sample) {
      return new ControllerKey(
          pid, text(sample, Metric.SIDE), text(sample, Metric.NUMBER), text(sample, Metric.DEVICE));
    }
  }

  /** A queue pair; its number is empty for what is counted of all together. */
  record QueueKey(String queue, @Nullable String initiator) {
    /** Whether it stands for all queue pairs of the controller. */
    boolean isWhole() {
      return queue.isEmpty();
    }
  }

  final long nanos;
  final SequencedMap<QueueKey, QueueCount> queues = new LinkedHashMap<>();
  String program = "";
  String model = "";
  @Nullable Long recoveries;

  private ControllerCount(long nanos) {
    this.nanos = nanos;
  }

  private static String text(Sample sample, String label) {
    String text = sample.label(label);
    return text == null ? "" : text;
  }

  /** Adds the controllers of one process. */
  static void collect(Answer answer, Map<ControllerKey, ControllerCount> all) {
    for (Metric metric : Metric.values()) {
      for (Sample sample : answer.metrics().samples(metric)) {
        all.computeIfAbsent(
                ControllerKey.of(answer.pid(), sample), _ -> new ControllerCount(answer.nanos()))
            .take(metric, sample);
      }
    }
  }

  private void take(Metric metric, Sample sample) {
    switch (metric) {
      case INFO -> {
        program = text(sample, Metric.PROGRAM);
        model = text(sample, Metric.MODEL);
      }
      case RECOVERIES -> recoveries = QueueCount.whole(QueueCount.sensible(sample));
      case RESETS, FAULTS -> {}
      default ->
          queues
              .computeIfAbsent(
                  new QueueKey(text(sample, Metric.QUEUE), sample.label(Metric.INITIATOR)),
                  _ -> new QueueCount())
              .take(metric, sample);
    }
  }
}
