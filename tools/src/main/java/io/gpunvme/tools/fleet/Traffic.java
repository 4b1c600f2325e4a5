package io.gpunvme.tools.fleet;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a simulated load or save took.
 *
 * @param seconds until all machines had everything
 * @param fixedSeconds of them in which no byte moved
 * @param links what was used, in the order in which bytes cross it
 */
public record Traffic(double seconds, double fixedSeconds, List<LinkUse> links) {
  private static final double ROUNDING = 1e-6;

  /**
   * Links of one kind.
   *
   * @param name of the kind
   * @param bytes through all of them
   * @param leastSeconds that the busiest of them needs for its bytes: arithmetic, no simulation
   */
  public record LinkUse(String name, double bytes, double leastSeconds) {}

  /** The list is copied. */
  public Traffic {
    links = List.copyOf(links);
  }

  static Traffic of(FluidSimulation simulation, double seconds) {
    Map<String, LinkUse> kinds = new LinkedHashMap<>();
    for (FluidSimulation.Link link : simulation.links()) {
      if (link.moved() > 0) {
        kinds.merge(
            link.name(),
            new LinkUse(link.name(), link.moved() * link.copies(), link.moved() / link.capacity()),
            (a, b) ->
                new LinkUse(a.name, a.bytes + b.bytes, Math.max(a.leastSeconds, b.leastSeconds)));
      }
    }
    return new Traffic(
        seconds,
        Math.max(0, seconds - simulation.movingSeconds()),
        new ArrayList<>(kinds.values()));
  }

  /** The kind of link that is busy for the largest part of the time; of equal ones the last. */
  public LinkUse busiest() {
    double most =
        links.stream()
            .mapToDouble(LinkUse::leastSeconds)
            .max()
            .orElseThrow(() -> new IllegalStateException("nothing moved"));
    return links.stream()
        .filter(link -> link.leastSeconds() >= most * (1 - ROUNDING))
        .reduce((_, later) -> later)
        .orElseThrow();
  }

  /** What it cannot be faster than, whatever is fixed. */
  public double leastSeconds() {
    return busiest().leastSeconds();
  }

  /** What limits it: the busiest link, or what is fixed if that takes more of the time. */
  public String limit() {
    return fixedSeconds > leastSeconds() ? "fixed costs" : busiest().name();
  }

  /** The part of the time in which the busiest link is at its limit, 0 to 1. */
  public double utilisation() {
    return leastSeconds() / seconds;
  }

  /** Bytes through the links of a kind; 0 if none were used. */
  public double bytes(String name) {
    return links.stream()
        .filter(link -> link.name().equals(name))
        .mapToDouble(LinkUse::bytes)
        .sum();
  }
}
