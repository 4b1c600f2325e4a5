package io.gpunvme.tools.topology;

import io.gpunvme.tools.machine.MachineFunction;

/**
 * A switch's link upwards, which everything below it shares on the way to host memory. What goes
 * from an SSD to a GPU below the same switch does not use it.
 *
 * @param function the switch's upstream port
 * @param ssds how many SSDs are below
 * @param gpus how many GPUs are below
 * @param gigabytesPerSecond what it carries in one direction; 0 if not known
 * @param ssdGigabytesPerSecond what all SSDs below could send; 0 if not known
 */
public record SharedLink(
    MachineFunction function,
    int ssds,
    int gpus,
    double gigabytesPerSecond,
    double ssdGigabytesPerSecond) {
  /** Whether the SSDs below can send more than it carries. */
  public boolean bottleneck() {
    return gigabytesPerSecond > 0 && ssdGigabytesPerSecond > gigabytesPerSecond;
  }
}
