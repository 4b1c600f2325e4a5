package io.gpunvme.tools.topology;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.tools.doctor.PairPlacements;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.MachineFunction;
import io.gpunvme.tools.topology.Spot.Kind;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * How the GPUs and SSDs of a machine hang together. Rates are what links carry in one direction
 * before the headers of packets; nothing is measured. Immutable.
 *
 * @param machine what it is drawn from
 * @param tree from the host down to each GPU and SSD
 * @param nvLinks the links between GPUs that are not PCI Express
 * @param pairs each GPU with each SSD
 * @param gpus each two GPUs
 * @param shared links of switches upwards, above more than one SSD or GPU
 * @param choices what to put where
 */
public record Topology(
    Machine machine,
    Spot tree,
    NvLinks nvLinks,
    List<PairWays> pairs,
    List<GpuWays> gpus,
    List<SharedLink> shared,
    Choices choices) {
  /** Lengths of requests for which stripe units are told, bytes, unless others are asked for. */
  public static final List<Long> REQUESTS = List.of(4L << 10, 256L << 10, 1L << 20, 16L << 20);

  /** Copies the lists. */
  public Topology {
    pairs = List.copyOf(pairs);
    gpus = List.copyOf(gpus);
    shared = List.copyOf(shared);
  }

  /**
   * Of a machine.
   *
   * @param placements null: no placements are told
   * @param requests lengths of requests for which stripe units are told, 1 byte or more
   * @throws InvalidRequestException if one of the lengths is less than 1
   */
  public static Topology of(
      Machine machine, NvLinks nvLinks, @Nullable PairPlacements placements, List<Long> requests) {
    Spot tree = TreeBuilder.build(machine);
    List<PairWays> pairs =
        machine.pairs().stream()
            .map(
                pair ->
                    PairWays.of(
                        machine,
                        pair,
                        placements == null ? Map.of() : placements.of(pair.gpu(), pair.ssd())))
            .toList();
    return new Topology(
        machine,
        tree,
        nvLinks,
        pairs,
        gpuWays(machine, nvLinks),
        tree.all().flatMap(spot -> shared(machine, spot)).toList(),
        Chooser.choose(machine, requests));
  }

  private static List<GpuWays> gpuWays(Machine machine, NvLinks nvLinks) {
    List<MachineFunction> all = machine.gpus();
    List<GpuWays> ways = new ArrayList<>();
    for (int i = 0; i < all.size(); i++) {
      for (MachineFunction b : all.subList(i + 1, all.size())) {
        MachineFunction a = all.get(i);
        ways.add(
            new GpuWays(
                a, b, machine.way(a, b), nvLinks.between(a.address(), b.address()).orElse(null)));
      }
    }
    return ways;
  }

  private static Stream<SharedLink> shared(Machine machine, Spot spot) {
    List<MachineFunction> ssds = spot.ends(Kind.SSD);
    int gpus = spot.ends(Kind.GPU).size();
    if (spot.kind() != Kind.SWITCH || spot.link() == null || ssds.size() + gpus < 2) {
      return Stream.empty();
    }
    double[] rates =
        ssds.stream().mapToDouble(s -> machine.linkAbove(s).gigabytesPerSecond()).toArray();
    double sum = Arrays.stream(rates).sum();
    boolean known = Arrays.stream(rates).allMatch(rate -> rate > 0);
    return Stream.of(
        new SharedLink(
            Objects.requireNonNull(spot.function()),
            ssds.size(),
            gpus,
            spot.link().gigabytesPerSecond(),
            known ? sum : 0));
  }

  /** The tree, one line a place. */
  public List<String> lines() {
    return tree.lines(machine);
  }
}
