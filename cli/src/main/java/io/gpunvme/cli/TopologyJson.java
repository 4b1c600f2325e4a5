package io.gpunvme.cli;

import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.tools.machine.LinkAbove;
import io.gpunvme.tools.machine.MachineFunction;
import io.gpunvme.tools.machine.NumaNode;
import io.gpunvme.tools.machine.PciWay;
import io.gpunvme.tools.topology.Choices;
import io.gpunvme.tools.topology.GpuWays;
import io.gpunvme.tools.topology.Limit;
import io.gpunvme.tools.topology.NvLinks;
import io.gpunvme.tools.topology.PairWays;
import io.gpunvme.tools.topology.SharedLink;
import io.gpunvme.tools.topology.Spot;
import io.gpunvme.tools.topology.StripeUnit;
import io.gpunvme.tools.topology.Topology;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A topology as {@code gpunvme topology --json} prints it. */
final class TopologyJson {
  private TopologyJson() {}

  static Map<String, Object> of(Topology topology) {
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("nodes", topology.machine().nodes().stream().map(TopologyJson::node).toList());
    object.put("pci", new MachineListing(topology.machine()).functionsJson());
    object.put("tree", spot(topology.tree()));
    object.put("pairs", topology.pairs().stream().map(TopologyJson::pair).toList());
    object.put("shared_links", topology.shared().stream().map(TopologyJson::shared).toList());
    object.put("nvlink", nvLinks(topology.nvLinks()));
    object.put("gpu_pairs", topology.gpus().stream().map(TopologyJson::gpus).toList());
    object.put("choices", choices(topology.choices()));
    return object;
  }

  private static @Nullable Object orNull(int number) {
    return number < 0 ? null : number;
  }

  private static @Nullable Double orNull(double rate) {
    return rate > 0 ? rate : null;
  }

  private static Map<String, Object> node(NumaNode node) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("number", node.number());
    one.put("socket", orNull(node.socket()));
    one.put("cpus", node.cpus());
    one.put("bytes", node.memoryBytes());
    one.put("distances", node.distances());
    return one;
  }

  // ---- tree

  private static Map<String, Object> spot(Spot spot) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("kind", spot.kind().name().toLowerCase(Locale.ROOT));
    one.put("name", spot.name());
    LinkAbove link = spot.link();
    if (link != null) {
      one.put("link", link(link));
    }
    if (spot.slot() != null) {
      one.put("downstream_port", spot.slot());
    }
    if (!spot.children().isEmpty()) {
      one.put("below", spot.children().stream().map(TopologyJson::spot).toList());
    }
    return one;
  }

  private static Map<String, Object> link(LinkAbove link) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("state", link.state());
    one.put("gb_per_s", orNull(link.gigabytesPerSecond()));
    one.put("gt_per_s", orNull(link.speed()));
    one.put("width", link.width() > 0 ? link.width() : null);
    one.put("best_gt_per_s", orNull(link.bestSpeed()));
    one.put("best_width", link.bestWidth() > 0 ? link.bestWidth() : null);
    one.put("idle", link.idle());
    return one;
  }

  // ---- ways

  private static Map<String, Object> pair(PairWays pair) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("gpu", pair.pair().gpu().address());
    one.put("ssd", pair.pair().ssd().address());
    way(one, pair.pair().way());
    Map<String, Object> placements = new LinkedHashMap<>();
    pair.placements()
        .forEach(
            (placement, verdict) ->
                placements.put(
                    placement.toString(),
                    Map.of("answer", verdict.answer(), "reason", verdict.reason())));
    one.put("placements", placements);
    one.put("direct", limit(pair.direct()));
    one.put("by_host", limit(pair.host()));
    one.put("cached", limit(pair.warm()));
    return one;
  }

  private static void way(Map<String, Object> one, PciWay way) {
    one.put("meet", way.route().name().toLowerCase(Locale.ROOT));
    one.put("common_port", way.common());
    one.put("slowest_link_above", way.bottleneck());
    one.put("acs_redirects", way.redirected());
  }

  private static Map<String, Object> limit(Limit limit) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("gb_per_s", orNull(limit.gigabytesPerSecond()));
    one.put("reason", limit.reason());
    return one;
  }

  private static Map<String, Object> shared(SharedLink shared) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("switch", shared.function().address());
    one.put("gb_per_s", orNull(shared.gigabytesPerSecond()));
    one.put("ssds", shared.ssds());
    one.put("gpus", shared.gpus());
    one.put("ssd_gb_per_s", orNull(shared.ssdGigabytesPerSecond()));
    one.put("bottleneck", shared.bottleneck());
    return one;
  }

  private static Map<String, Object> nvLinks(NvLinks links) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("known", links.known());
    one.put("problem", links.known() ? null : links.problem());
    one.put("bundles", links.bundles().stream().map(TopologyJson::bundle).toList());
    return one;
  }

  private static Map<String, Object> bundle(NvLinks.Bundle bundle) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("gpu", bundle.gpu());
    one.put("peer", bundle.peer());
    one.put("nvswitch", bundle.peer() == null);
    one.put("links", bundle.links());
    one.put("gb_per_s", orNull(bundle.gigabytesPerSecond()));
    return one;
  }

  private static Map<String, Object> gpus(GpuWays ways) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("a", ways.a().address());
    one.put("b", ways.b().address());
    way(one, ways.way());
    one.put("pcie_gb_per_s", orNull(ways.way().gigabytesPerSecond()));
    NvLinks.Bundle nvlink = ways.nvlink();
    one.put("nvlink_gb_per_s", nvlink == null ? null : orNull(nvlink.gigabytesPerSecond()));
    return one;
  }

  // ---- choices

  private static Map<String, Object> choices(Choices choices) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("gpus", choices.gpus().stream().map(TopologyJson::choice).toList());
    one.put("ssds", choices.ssds().stream().map(TopologyJson::choice).toList());
    one.put("sets", choices.sets().stream().map(TopologyJson::choice).toList());
    return one;
  }

  private static List<PciAddress> addresses(List<MachineFunction> functions) {
    return functions.stream().map(MachineFunction::address).toList();
  }

  private static Map<String, Object> choice(Choices.ForGpu choice) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("gpu", choice.gpu().address());
    one.put("nearest", addresses(choice.nearest()));
    one.put("reason", choice.reason());
    return one;
  }

  private static Map<String, Object> choice(Choices.ForSsd choice) {
    Map<String, Object> one = new LinkedHashMap<>();
    MachineFunction gpu = choice.gpu();
    one.put("ssd", choice.ssd().address());
    one.put("gpu", gpu == null ? null : gpu.address());
    one.put("reason", choice.reason());
    one.put("queues_node", orNull(choice.queues()));
    one.put("pinned_node", orNull(choice.staging()));
    one.put("threads_node", orNull(choice.workers()));
    one.put("node_reason", choice.nodeReason());
    return one;
  }

  private static Map<String, Object> choice(Choices.ForSet choice) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("gpu", choice.gpu().address());
    one.put("ssds", addresses(choice.ssds()));
    one.put("limit", limit(choice.limit()));
    one.put("units", choice.units().stream().map(TopologyJson::unit).toList());
    return one;
  }

  private static Map<String, Object> unit(StripeUnit unit) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("request_bytes", unit.requestBytes());
    one.put("unit_bytes", unit.unitBytes());
    one.put("ssds_at_work", unit.busy());
    one.put("reason", unit.reason());
    return one;
  }
}
