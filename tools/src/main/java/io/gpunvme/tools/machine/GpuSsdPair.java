package io.gpunvme.tools.machine;

import io.gpunvme.nvme.pci.PciAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A GPU and an SSD, and the way between them.
 *
 * @param gpu the GPU
 * @param ssd the SSD
 * @param route where their ways meet
 * @param common the lowest port above both; null if only the root complex is
 * @param gigabytesPerSecond what the slowest link between them carries at its best, before the
 *     headers of packets; 0 if a link does not say
 * @param bottleneck the function above which that link is; null if not known
 * @param redirected ports on the way that send traffic between peers up to the root complex (ACS)
 */
public record GpuSsdPair(
    MachineFunction gpu,
    MachineFunction ssd,
    Route route,
    @Nullable PciAddress common,
    double gigabytesPerSecond,
    @Nullable PciAddress bottleneck,
    List<PciAddress> redirected) {
  /** Copies the list. */
  public GpuSsdPair {
    redirected = List.copyOf(redirected);
  }

  /** Where two ways meet, the best first. */
  public enum Route {
    /** Below a switch: traffic between them need not leave it. */
    SWITCH("the same switch"),
    /** Below one root port. */
    ROOT_PORT("the same root port"),
    /** In the root complex, which need not forward traffic between peers. */
    ROOT_COMPLEX("the root complex");

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

  static GpuSsdPair of(Machine machine, MachineFunction gpu, MachineFunction ssd) {
    List<PciAddress> common = new ArrayList<>(gpu.parents());
    common.retainAll(ssd.parents());
    int depth = common.size();
    List<MachineFunction> hops = new ArrayList<>(below(machine, gpu, depth));
    hops.addAll(below(machine, ssd, depth));
    double slowest = 0;
    PciAddress where = null;
    boolean known = true;
    for (MachineFunction hop : hops) {
      double rate = rate(machine, hop);
      // A root port's own link is the one above the function below it, and counted there.
      if (rate == 0 && !hop.bridge()) {
        known = false;
      } else if (rate > 0 && (where == null || rate < slowest)) {
        slowest = rate;
        where = hop.address();
      }
    }
    return new GpuSsdPair(
        gpu,
        ssd,
        depth == 0 ? Route.ROOT_COMPLEX : depth == 1 ? Route.ROOT_PORT : Route.SWITCH,
        depth == 0 ? null : common.getLast(),
        known ? slowest : 0,
        known ? where : null,
        hops.stream()
            .filter(hop -> hop.accessControl() == AccessControl.REDIRECTED)
            .map(MachineFunction::address)
            .toList());
  }

  /** The function and the ports above it, as far as they are not above the other one too. */
  private static List<MachineFunction> below(Machine machine, MachineFunction end, int depth) {
    List<MachineFunction> hops = new ArrayList<>(List.of(end));
    for (PciAddress port : end.parents().subList(depth, end.parents().size())) {
      machine.find(port).ifPresent(hops::add);
    }
    return hops;
  }

  /**
   * What the link above a function can carry: both ends must be able to, and idle GPUs lower the
   * speed of now, so the speed is the lesser of both ends' best; the width of now stays.
   */
  private static double rate(Machine machine, MachineFunction function) {
    PciLink link = function.link();
    if (function.parents().isEmpty()) {
      // The link of a root port is that of the function below it.
      return function.bridge() ? 0 : link.maxGigabytesPerSecond();
    }
    double speed = link.maxSpeed() > 0 ? link.maxSpeed() : link.speed();
    double above =
        machine
            .find(function.parents().getLast())
            .map(port -> port.link().maxSpeed())
            .filter(best -> best > 0)
            .orElse(speed);
    int width = link.width() > 0 ? link.width() : link.maxWidth();
    return PciLink.gigabytesPerSecond(Math.min(speed, above), width);
  }

  /** The lowest port above both, if there is one. */
  public Optional<PciAddress> meeting() {
    return Optional.ofNullable(common);
  }
}
