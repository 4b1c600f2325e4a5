package io.gpunvme.tools.top;

import io.gpunvme.gpu.watch.Metric;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A controller as one process sees it.
 *
 * @param pid the process
 * @param program what the process is called; empty if it did not say
 * @param side {@code driver} or {@code controller}
 * @param device the address by which it was opened, or is served
 * @param model what the controller calls itself; empty if the process did not say
 * @param queues those that there are, or were at work since the look before
 * @param rates of all queue pairs together
 * @param recoveries of queue pairs since it was opened; null if not known
 */
public record TopController(
    long pid,
    String program,
    String side,
    String device,
    String model,
    List<TopQueue> queues,
    TopRates rates,
    @Nullable Long recoveries) {
  /** Whether the process drives the controller; else it is the controller. */
  public boolean isDriven() {
    return side.equals(Metric.DRIVER);
  }
}
