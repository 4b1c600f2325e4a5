package io.gpunvme.gpu.watch;

import io.gpunvme.nvme.driver.ControllerTraffic;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueueTraffic;
import io.gpunvme.nvme.spec.IdentifyController;
import java.math.BigDecimal;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A controller that this process drives.
 *
 * @param number tells it from others with the same address
 */
record DrivenController(String address, long number, NvmeController controller) implements Watched {
  private static final int NANO_DIGITS = 9;

  @Override
  public void addTo(MetricText text) {
    Map<String, String> labels = new LinkedHashMap<>();
    labels.put(Metric.DEVICE, address);
    labels.put(Metric.SIDE, Metric.DRIVER);
    labels.put(Metric.NUMBER, Long.toString(number));
    Map<String, String> info = new LinkedHashMap<>(labels);
    info.put(Metric.MODEL, controller.identify().getText(IdentifyController.MN));
    info.put(Metric.PROGRAM, Program.NAME);
    text.add(Metric.INFO, info, 1);
    ControllerTraffic traffic = controller.traffic();
    text.add(Metric.RECOVERIES, labels, traffic.recoveries());
    text.add(Metric.RESETS, labels, controller.resets());
    traffic.queues().forEach(queue -> add(text, new LinkedHashMap<>(labels), queue));
  }

  private static void add(MetricText text, Map<String, String> labels, QueueTraffic queue) {
    labels.put(Metric.QUEUE, queue.queues());
    labels.put(Metric.INITIATOR, initiator(queue.kind()));
    // Before the numbers: one that is closed afterwards was open when they were read.
    boolean open = !queue.isClosed();
    QueueTraffic.Counts counts = queue.counts();
    text.add(Metric.COMMANDS, labels, counts.completed());
    text.add(Metric.SUBMITTED, labels, counts.submitted());
    // Of a kernel that carries out transfers only the most that it may have is known.
    if (open && queue.kind() != QueueTraffic.Kind.TRANSFERS) {
      text.add(Metric.OUTSTANDING, labels, counts.outstanding());
    }
    if (queue.kind().measured()) {
      text.add(Metric.RETRIES, labels, counts.retries());
      text.add(Metric.SECONDS, Metric.SUM, labels, seconds(counts.latencyNanos()));
      text.add(Metric.SECONDS, Metric.COUNT, labels, Long.toString(counts.latencies()));
      labels.put(Metric.DIRECTION, "read");
      text.add(Metric.BYTES, labels, counts.readBytes());
      labels.put(Metric.DIRECTION, "write");
      text.add(Metric.BYTES, labels, counts.writtenBytes());
    }
  }

  private static String initiator(QueueTraffic.Kind kind) {
    return switch (kind) {
      case CPU -> "cpu";
      case TRANSFERS -> "gpu";
      case KERNELS -> "kernel";
    };
  }

  private static String seconds(long nanos) {
    return BigDecimal.valueOf(nanos, NANO_DIGITS).toPlainString();
  }
}
