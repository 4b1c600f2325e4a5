package io.gpunvme.tools.machine;

import io.gpunvme.nvme.pci.PciAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The way between two functions.
 *
 * @param route where it turns
 * @param common the lowest port above both; null if only the root complex is
 * @param gigabytesPerSecond what its slowest link carries, before the headers of packets; 0 if a
 *     link does not say
 * @param bottleneck the function above which that link is; null if not known
 * @param redirected ports on it that send traffic between peers up to the root complex (ACS)
 */
public record PciWay(
    Route route,
    @Nullable PciAddress common,
    double gigabytesPerSecond,
    @Nullable PciAddress bottleneck,
    List<PciAddress> redirected) {
  /** Copies the list. */
  public PciWay {
    redirected = List.copyOf(redirected);
  }

  /** Where two ways meet, the best first. */
  public enum Route {
    /** Below a switch: traffic between them need not leave it. */
    SWITCH("the same switch"),
    /** Below one root port. */
    ROOT_PORT("the same root port"),
    /** In the root complex, which need not forward traffic between peers. */
    ROOT_COMPLEX("the root complex"),
    /** On two NUMA nodes: in the link between them, of which the kernel says no rate. */
    NODES("across NUMA nodes");

    private final String text;

    Route(String text) {
      this.text = text;
    }

    /** As it is printed. */
    @Override
    public String toString() {
      return text;
    }
  }

  /** The slowest link of several; no function where one of them does not say. */
  private record Slowest(double gigabytesPerSecond, @Nullable PciAddress above) {}

  static PciWay between(Machine machine, MachineFunction a, MachineFunction b) {
    List<PciAddress> common = new ArrayList<>(a.parents());
    common.retainAll(b.parents());
    int depth = common.size();
    List<MachineFunction> hops = new ArrayList<>(below(machine, a, depth));
    hops.addAll(below(machine, b, depth));
    Slowest slowest = slowest(machine, hops, List.of(a, b));
    return new PciWay(
        route(a, b, depth),
        depth == 0 ? null : common.getLast(),
        slowest.gigabytesPerSecond,
        slowest.above,
        hops.stream()
            .filter(hop -> hop.accessControl() == AccessControl.REDIRECTED)
            .map(MachineFunction::address)
            .toList());
  }

  private static Route route(MachineFunction a, MachineFunction b, int depth) {
    if (depth == 0) {
      return a.numaNode() >= 0 && b.numaNode() >= 0 && a.numaNode() != b.numaNode()
          ? Route.NODES
          : Route.ROOT_COMPLEX;
    }
    return depth == 1 ? Route.ROOT_PORT : Route.SWITCH;
  }

  /**
   * What the slowest link between a function and the root complex carries, GB/s before the headers
   * of packets; 0 if a link does not say.
   */
  static double toMemory(Machine machine, MachineFunction function) {
    return slowest(machine, below(machine, function, 0), List.of(function)).gigabytesPerSecond;
  }

  private static Slowest slowest(
      Machine machine, List<MachineFunction> hops, List<MachineFunction> ends) {
    double least = 0;
    PciAddress where = null;
    for (MachineFunction hop : hops) {
      double rate = machine.linkAbove(hop).gigabytesPerSecond();
      // What belongs to the root complex has no link above it: root ports, Intel's VMD.
      if (rate == 0 && ends.contains(hop)) {
        return new Slowest(0, null);
      } else if (rate > 0 && (where == null || rate < least)) {
        least = rate;
        where = hop.address();
      }
    }
    return new Slowest(least, where);
  }

  /** The function and the ports above it, as far as they are not above the other one too. */
  private static List<MachineFunction> below(Machine machine, MachineFunction end, int depth) {
    List<MachineFunction> hops = new ArrayList<>(List.of(end));
    for (PciAddress port : end.parents().subList(depth, end.parents().size())) {
      machine.find(port).ifPresent(hops::add);
    }
    return hops;
  }

  /** The lowest port above both, if there is one. */
  public Optional<PciAddress> meeting() {
    return Optional.ofNullable(common);
  }
}
