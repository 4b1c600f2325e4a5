package io.gpunvme.tools.topology;

import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.tools.doctor.PairPlacements;
import io.gpunvme.tools.machine.GpuSsdPair;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.MachineFunction;
import io.gpunvme.tools.machine.NumaNode;
import io.gpunvme.tools.machine.PciWay;
import io.gpunvme.tools.machine.PciWay.Route;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * What a GPU and an SSD can do together.
 *
 * @param pair the two, and the way between them
 * @param placements what looking tells about each; empty if it was not looked
 * @param direct from the SSD straight to GPU memory (placements {@code vram-data} and {@code vram})
 * @param host through pinned host memory (placement {@code host}, path {@code pinned})
 * @param warm a file in the page cache to the GPU (a cold one comes as {@code host})
 */
public record PairWays(
    GpuSsdPair pair,
    Map<Placement, PairPlacements.Verdict> placements,
    Limit direct,
    Limit host,
    Limit warm) {
  private static final String SILENT = "a link does not say its speed";

  /** Copies the map, in the order of the placements. */
  public PairWays {
    placements = Collections.unmodifiableMap(new TreeMap<>(placements));
  }

  static PairWays of(
      Machine machine, GpuSsdPair pair, Map<Placement, PairPlacements.Verdict> placements) {
    return new PairWays(
        pair, placements, direct(machine, pair), host(machine, pair), warm(machine, pair));
  }

  private static String crosses(Machine machine, GpuSsdPair pair) {
    int from = pair.ssd().numaNode();
    int to = pair.gpu().numaNode();
    int fromSocket = socket(machine, from);
    int toSocket = socket(machine, to);
    String sockets =
        fromSocket >= 0 && toSocket >= 0 && fromSocket != toSocket
            ? " and from socket %d to %d".formatted(fromSocket, toSocket)
            : "";
    return "crosses from NUMA node %d to %d%s: the link between them does not say its speed"
        .formatted(from, to, sockets);
  }

  private static int socket(Machine machine, int node) {
    return machine.nodes().stream()
        .filter(n -> n.number() == node)
        .mapToInt(NumaNode::socket)
        .findFirst()
        .orElse(-1);
  }

  private static Limit direct(Machine machine, GpuSsdPair pair) {
    PciWay way = pair.way();
    PciAddress bottleneck = way.bottleneck();
    if (way.route() == Route.NODES) {
      return Limit.unknown(crosses(machine, pair));
    }
    if (bottleneck == null) {
      return Limit.unknown(SILENT);
    }
    if (way.route() == Route.ROOT_COMPLEX) {
      return new Limit(
          way.gigabytesPerSecond(),
          "the link above " + bottleneck + "; the root complex need not forward it at all");
    }
    if (!way.redirected().isEmpty()) {
      String ports =
          way.redirected().stream().map(PciAddress::toString).collect(Collectors.joining(", "));
      return new Limit(
          Math.min(machine.toMemory(pair.gpu()), machine.toMemory(pair.ssd())),
          "ACS at " + ports + " sends it up to the root complex and back");
    }
    return new Limit(way.gigabytesPerSecond(), "the link above " + bottleneck);
  }

  private static Limit host(Machine machine, GpuSsdPair pair) {
    if (pair.way().route() == Route.NODES) {
      return Limit.unknown(crosses(machine, pair));
    }
    double ssd = machine.toMemory(pair.ssd());
    double gpu = machine.toMemory(pair.gpu());
    return ssd == 0 || gpu == 0
        ? Limit.unknown(SILENT)
        : new Limit(Math.min(ssd, gpu), ssd <= gpu ? "the SSD's links" : "the GPU's links");
  }

  private static Limit warm(Machine machine, GpuSsdPair pair) {
    MachineFunction gpu = pair.gpu();
    double rate = machine.toMemory(gpu);
    return rate == 0
        ? Limit.unknown(SILENT)
        : new Limit(rate, "the GPU's links; memory and the CPU's copies may be slower");
  }
}
