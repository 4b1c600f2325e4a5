package io.gpunvme.tools.topology;

import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.tools.machine.DiskUse;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.MachineFunction;
import io.gpunvme.tools.machine.NumaNode;
import io.gpunvme.tools.machine.PciWay;
import io.gpunvme.tools.machine.PciWay.Route;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Makes the {@link Choices}. */
final class Chooser {
  /** What firmware says of a node and itself, and of two nodes that it does not describe. */
  private static final int SAME = 10;

  private static final int OTHER = 20;

  private final Machine machine;
  private final List<Long> requests;
  private final Map<PciAddress, Integer> taken = new HashMap<>();

  private Chooser(Machine machine, List<Long> requests) {
    this.machine = machine;
    this.requests = requests;
  }

  static Choices choose(Machine machine, List<Long> requests) {
    Chooser chooser = new Chooser(machine, requests);
    List<Choices.ForGpu> gpus = machine.gpus().stream().map(chooser::forGpu).toList();
    List<Choices.ForSsd> ssds = machine.ssds().stream().map(chooser::forSsd).toList();
    return new Choices(gpus, ssds, chooser.sets(ssds));
  }

  /** How near two functions are: smaller is nearer. */
  private record Nearness(Route route, int distance) implements Comparable<Nearness> {
    @Override
    public int compareTo(Nearness other) {
      int byRoute = route.compareTo(other.route);
      return byRoute != 0 ? byRoute : Integer.compare(distance, other.distance);
    }
  }

  private Nearness nearness(MachineFunction a, MachineFunction b) {
    return new Nearness(machine.way(a, b).route(), distance(a.numaNode(), b.numaNode()));
  }

  private int distance(int a, int b) {
    if (a < 0 || b < 0 || a == b) {
      return SAME;
    }
    Optional<NumaNode> node = machine.nodes().stream().filter(n -> n.number() == a).findFirst();
    List<Integer> distances = node.map(NumaNode::distances).orElse(List.of());
    // In the order of the nodes that are there, whose numbers may have gaps.
    List<Integer> numbers = machine.nodes().stream().map(NumaNode::number).toList();
    int index = numbers.indexOf(b);
    return index >= 0 && index < distances.size() ? distances.get(index) : OTHER;
  }

  // ---- GPUs

  private Choices.ForGpu forGpu(MachineFunction gpu) {
    Optional<Nearness> best =
        machine.ssds().stream().map(ssd -> nearness(gpu, ssd)).min(Comparator.naturalOrder());
    List<MachineFunction> nearest =
        machine.ssds().stream()
            .filter(ssd -> Optional.of(nearness(gpu, ssd)).equals(best))
            .toList();
    return new Choices.ForGpu(
        gpu, nearest, nearest.isEmpty() ? "no SSD" : meeting(machine.way(gpu, nearest.getFirst())));
  }

  private static String meeting(PciWay way) {
    return way.route() + way.meeting().map(at -> " " + at).orElse("");
  }

  // ---- SSDs

  private Choices.ForSsd forSsd(MachineFunction ssd) {
    Comparator<MachineFunction> order =
        Comparator.<MachineFunction, Nearness>comparing(gpu -> nearness(ssd, gpu))
            .thenComparing(gpu -> taken.getOrDefault(gpu.address(), 0))
            .thenComparing(MachineFunction::address);
    Optional<MachineFunction> chosen = machine.gpus().stream().min(order);
    if (chosen.isEmpty()) {
      int node = ssd.numaNode();
      return new Choices.ForSsd(ssd, null, "no GPU", node, node, node, onOne(node));
    }
    MachineFunction gpu = chosen.get();
    long alike =
        machine.gpus().stream().filter(g -> nearness(ssd, g).equals(nearness(ssd, gpu))).count();
    taken.merge(gpu.address(), 1, Integer::sum);
    String reason =
        meeting(machine.way(ssd, gpu))
            + (alike > 1 ? "; of " + alike + " as near, the one with the fewest SSDs" : "");
    int own = ssd.numaNode();
    int theirs = gpu.numaNode();
    return new Choices.ForSsd(
        ssd, gpu, reason, own, theirs < 0 ? own : theirs, own, nodes(own, theirs));
  }

  private static String onOne(int node) {
    return node < 0 ? "the kernel names no node" : "the SSD's node";
  }

  private static String nodes(int ssd, int gpu) {
    if (ssd < 0 && gpu < 0) {
      return "the kernel names no node";
    }
    if (ssd < 0 || gpu < 0 || ssd == gpu) {
      return "the node of both";
    }
    return "queues and threads on the SSD's, pinned memory on the GPU's: they differ, and all data"
        + " crosses";
  }

  // ---- sets

  private List<Choices.ForSet> sets(List<Choices.ForSsd> choices) {
    List<Choices.ForSet> sets = new ArrayList<>();
    for (MachineFunction gpu : machine.gpus()) {
      List<MachineFunction> own =
          choices.stream()
              .filter(c -> gpu.equals(c.gpu()))
              .map(Choices.ForSsd::ssd)
              .filter(ssd -> DiskUse.of(machine, ssd.address()).isEmpty())
              .toList();
      Optional<Nearness> best =
          own.stream().map(ssd -> nearness(gpu, ssd)).min(Comparator.naturalOrder());
      List<MachineFunction> ssds =
          own.stream().filter(ssd -> Optional.of(nearness(gpu, ssd)).equals(best)).toList();
      if (ssds.size() > 1) {
        sets.add(
            new Choices.ForSet(
                gpu,
                ssds,
                limit(gpu, ssds),
                requests.stream().map(bytes -> StripeUnit.of(bytes, ssds.size())).toList()));
      }
    }
    return sets;
  }

  /**
   * Of all SSDs of a set at once into the GPU. Each member has the same share of the bytes, so the
   * one that gets the least sets the rate of all.
   */
  private Limit limit(MachineFunction gpu, List<MachineFunction> ssds) {
    if (ssds.stream().anyMatch(ssd -> machine.way(gpu, ssd).route() == Route.NODES)) {
      return Limit.unknown("some cross to another NUMA node");
    }
    List<PciAddress> common = new ArrayList<>(gpu.parents());
    ssds.forEach(ssd -> common.retainAll(ssd.parents()));
    if (ssds.stream().anyMatch(ssd -> !machine.way(gpu, ssd).redirected().isEmpty())) {
      common.clear(); // Up to the root complex and back.
    }
    // How many members send through the link above each function; the last one is the GPU's.
    Map<PciAddress, Integer> users = new LinkedHashMap<>();
    for (MachineFunction ssd : ssds) {
      users.merge(ssd.address(), 1, Integer::sum);
      ssd.parents().stream()
          .filter(port -> !common.contains(port))
          .forEach(port -> users.merge(port, 1, Integer::sum));
    }
    gpu.parents().stream()
        .filter(port -> !common.contains(port))
        .forEach(port -> users.put(port, ssds.size()));
    users.put(gpu.address(), ssds.size());

    double share = Double.MAX_VALUE;
    String reason = "";
    for (Map.Entry<PciAddress, Integer> link : users.entrySet()) {
      Optional<MachineFunction> below = machine.find(link.getKey());
      double rate = below.map(f -> machine.linkAbove(f).gigabytesPerSecond()).orElse(0.0);
      int sharers = link.getValue();
      if (rate == 0 && below.filter(f -> f.equals(gpu) || ssds.contains(f)).isPresent()) {
        return Limit.unknown("a link does not say its speed");
      }
      if (rate > 0 && rate / sharers < share) {
        share = rate / sharers;
        reason =
            "the link above "
                + link.getKey()
                + (sharers > 1 ? ", which " + sharers + " of them share" : "");
      }
    }
    return new Limit(share * ssds.size(), reason);
  }
}
