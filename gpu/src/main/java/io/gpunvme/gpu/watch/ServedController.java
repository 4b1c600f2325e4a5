package io.gpunvme.gpu.watch;

import io.gpunvme.sim.SimStats;
import io.gpunvme.sim.SimulatedController;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * An embedded controller that this process serves to others. It counts commands by queue and bytes
 * of all queues together; latencies are its clients' to measure.
 *
 * @param number tells it from others with the same address
 */
record ServedController(String address, long number, SimulatedController controller)
    implements Watched {
  @Override
  public void addTo(MetricText text) {
    Map<String, String> labels = new LinkedHashMap<>();
    labels.put(Metric.DEVICE, address);
    labels.put(Metric.SIDE, Metric.CONTROLLER);
    labels.put(Metric.NUMBER, Long.toString(number));
    Map<String, String> info = new LinkedHashMap<>(labels);
    info.put(Metric.MODEL, controller.simConfig().model());
    info.put(Metric.PROGRAM, Program.NAME);
    text.add(Metric.INFO, info, 1);
    SimStats stats = controller.stats();
    text.add(Metric.FAULTS, labels, stats.faults());
    for (int qid = 1; qid <= controller.simConfig().ioQueues(); qid++) {
      long commands = stats.commandsOn(qid);
      if (commands > 0) {
        Map<String, String> queue = new LinkedHashMap<>(labels);
        queue.put(Metric.QUEUE, Integer.toString(qid));
        text.add(Metric.COMMANDS, queue, commands);
      }
    }
    labels.put(Metric.DIRECTION, "read");
    text.add(Metric.BYTES, labels, stats.readBytes());
    labels.put(Metric.DIRECTION, "write");
    text.add(Metric.BYTES, labels, stats.writtenBytes());
  }
}
