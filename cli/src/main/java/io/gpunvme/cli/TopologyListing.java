package io.gpunvme.cli;

import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.tools.doctor.PairPlacements.Answer;
import io.gpunvme.tools.doctor.PairPlacements.Verdict;
import io.gpunvme.tools.machine.MachineFunction;
import io.gpunvme.tools.topology.Choices;
import io.gpunvme.tools.topology.GpuWays;
import io.gpunvme.tools.topology.Limit;
import io.gpunvme.tools.topology.NvLinks;
import io.gpunvme.tools.topology.PairWays;
import io.gpunvme.tools.topology.SharedLink;
import io.gpunvme.tools.topology.StripeUnit;
import io.gpunvme.tools.topology.Topology;
import java.io.PrintStream;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** A topology as {@code gpunvme topology} prints it. */
final class TopologyListing {
  private static final int INDENT = 2;
  private static final String NONE = "-";

  /** So many pairs are all shown; of more, those of the nearest. */
  private static final int FEW_PAIRS = 32;

  private final Topology topology;
  private final boolean all;

  TopologyListing(Topology topology, boolean all) {
    this.topology = topology;
    this.all = all;
  }

  void print(PrintStream out) {
    topology.lines().forEach(out::println);
    pairs(out);
    shared(out);
    gpus(out);
    choices(out);
    sets(out);
  }

  private static void heading(PrintStream out, String text) {
    out.println();
    out.println(text);
  }

  private static Object orNone(int node) {
    return node < 0 ? NONE : node;
  }

  // ---- pairs

  private void pairs(PrintStream out) {
    List<PairWays> shown =
        all || topology.pairs().size() <= FEW_PAIRS
            ? topology.pairs()
            : topology.pairs().stream().filter(this::near).toList();
    if (shown.isEmpty()) {
      return;
    }
    heading(out, "Each GPU with each SSD (GB/s that the links allow; - not known):");
    Table table = new Table(INDENT);
    table.row("GPU", "SSD", "DIRECT", "BY HOST", "CACHED", "HOST", "VRAM-DATA", "VRAM", "MEET AT");
    for (PairWays pair : shown) {
      table.row(
          pair.pair().gpu().address(),
          pair.pair().ssd().address(),
          pair.direct(),
          pair.host(),
          pair.warm(),
          answer(pair, Placement.HOST),
          answer(pair, Placement.VRAM_DATA),
          answer(pair, Placement.VRAM),
          pair.pair().way().route() + pair.pair().way().meeting().map(at -> " " + at).orElse(""));
    }
    table.print(out);
    int more = topology.pairs().size() - shown.size();
    if (more > 0) {
      out.printf("  %d pairs that are farther apart are left out; --all shows them.%n", more);
    }
    legend(out, shown);
  }

  /** Whether no SSD is nearer to the GPU, or no GPU nearer to the SSD. */
  private boolean near(PairWays pair) {
    return topology.choices().gpus().stream()
            .anyMatch(
                c -> c.gpu().equals(pair.pair().gpu()) && c.nearest().contains(pair.pair().ssd()))
        || topology.choices().ssds().stream()
            .anyMatch(c -> c.ssd().equals(pair.pair().ssd()) && pair.pair().gpu().equals(c.gpu()));
  }

  private static String answer(PairWays pair, Placement placement) {
    Verdict verdict = pair.placements().get(placement);
    return verdict == null
        ? NONE
        : switch (verdict.answer()) {
          case OPEN -> "yes";
          case AFTER_BIND -> "bind";
          case BLOCKED -> "no";
        };
  }

  private static void legend(PrintStream out, List<PairWays> pairs) {
    out.println("  direct: from the SSD into GPU memory (placements vram-data, vram)");
    out.println("  by host: through pinned host memory (placement host; a file by pinned)");
    out.println("  cached: a file that is in the page cache, to the GPU");
    if (has(pairs, Answer.OPEN)) {
      out.println("  yes: nothing known is in its way; gpunvme check-p2p tries it");
    }
    if (has(pairs, Answer.AFTER_BIND)) {
      out.println("  bind: after gpunvme bind SSD (vram-data, vram: gpunvme bind SSD --kmod)");
    }
    Map<String, Set<Placement>> reasons = new LinkedHashMap<>();
    Set<String> limits = new LinkedHashSet<>();
    for (PairWays pair : pairs) {
      pair.placements()
          .forEach(
              (placement, verdict) -> {
                if (verdict.answer() == Answer.BLOCKED) {
                  reasons.computeIfAbsent(verdict.reason(), _ -> new TreeSet<>()).add(placement);
                }
              });
      for (Limit limit : List.of(pair.direct(), pair.host(), pair.warm())) {
        if (!limit.known()) {
          limits.add(limit.reason());
        }
      }
    }
    reasons.forEach(
        (reason, placements) ->
            out.println(
                "  no "
                    + placements.stream().map(Placement::toString).collect(Collectors.joining(", "))
                    + ": "
                    + reason));
    limits.forEach(reason -> out.println("  - : " + reason));
    detours(out, pairs);
  }

  /** What a limit does not say in its number. */
  private static void detours(PrintStream out, List<PairWays> pairs) {
    pairs.stream()
        .filter(pair -> pair.pair().way().meeting().isEmpty() && pair.direct().known())
        .findFirst()
        .ifPresent(
            _ -> out.println("  a root complex need not forward from an SSD to a GPU at all"));
    for (PairWays pair : pairs) {
      List<PciAddress> ports = pair.pair().way().redirected();
      if (!ports.isEmpty() && pair.direct().known()) {
        out.printf("  %s: %s%n", pair.pair().ssd().address(), pair.direct().reason());
      }
    }
  }

  private static boolean has(List<PairWays> pairs, Answer answer) {
    return pairs.stream()
        .flatMap(pair -> pair.placements().values().stream())
        .anyMatch(verdict -> verdict.answer() == answer);
  }

  // ---- links

  private void shared(PrintStream out) {
    if (topology.shared().isEmpty()) {
      return;
    }
    heading(out, "Links that several share on the way to host memory (GB/s):");
    Table table = new Table(INDENT).row("SWITCH", "LINK", "SSDS BELOW", "TOGETHER", "");
    for (SharedLink shared : topology.shared()) {
      table.row(
          shared.function().address(),
          rate(shared.gigabytesPerSecond()),
          shared.ssds(),
          rate(shared.ssdGigabytesPerSecond()),
          shared.bottleneck() ? "bottleneck: narrower than its SSDs" : "");
    }
    table.print(out);
  }

  private static String rate(double gigabytesPerSecond) {
    return gigabytesPerSecond > 0 ? String.format(Locale.ROOT, "%.1f", gigabytesPerSecond) : NONE;
  }

  private void gpus(PrintStream out) {
    if (topology.gpus().isEmpty()) {
      return;
    }
    NvLinks nvLinks = topology.nvLinks();
    heading(
        out,
        nvLinks.known()
            ? "Between GPUs:"
            : "Between GPUs (NVLink not known: " + nvLinks.problem() + "):");
    Table table = new Table(INDENT).row("GPU", "GPU", "PCIE GB/s", "NVLINK", "MEET AT");
    for (GpuWays ways : topology.gpus()) {
      table.row(
          ways.a().address(),
          ways.b().address(),
          rate(ways.way().gigabytesPerSecond()),
          nvLink(ways),
          ways.way().route() + ways.way().meeting().map(at -> " " + at).orElse(""));
    }
    table.print(out);
  }

  private static String nvLink(GpuWays ways) {
    NvLinks.Bundle bundle = ways.nvlink();
    if (bundle == null) {
      return NONE;
    }
    return bundle.links()
        + (bundle.gigabytesPerSecond() > 0
            ? String.format(Locale.ROOT, " links, %.0f GB/s", bundle.gigabytesPerSecond())
            : " links")
        + (bundle.peer() == null ? " by NVSwitch" : "");
  }

  // ---- choices

  private void choices(PrintStream out) {
    Choices choices = topology.choices();
    if (choices.ssds().isEmpty()) {
      return;
    }
    heading(out, "What to put where (NUMA nodes; by the topology alone):");
    Table table = new Table(INDENT);
    table.row("SSD", "GPU", "QUEUES", "PINNED", "THREADS", "WHY");
    for (Choices.ForSsd choice : choices.ssds()) {
      MachineFunction gpu = choice.gpu();
      table.row(
          choice.ssd().address(),
          gpu == null ? NONE : gpu.address(),
          orNone(choice.queues()),
          orNone(choice.staging()),
          orNone(choice.workers()),
          choice.reason() + "; " + choice.nodeReason());
    }
    table.print(out);
    out.println(
        "  You choose: the SSD and the GPU by their addresses, a placement by --placement.");
    if (topology.machine().nodes().size() > 1) {
      out.println(
          "  gpunvme places memory and its own threads so by itself. You choose: numa=N or numa=off"
              + " in an SSD's or a file's");
      out.println("  address, GPUNVME_GPU_NUMA=N or off for pinned memory of GPUs.");
    }
  }

  private void sets(PrintStream out) {
    List<Choices.ForSet> sets = topology.choices().sets();
    if (sets.isEmpty()) {
      return;
    }
    heading(out, "Stripe sets of unused SSDs that are nearest to one GPU (override: ;unit=SIZE):");
    for (Choices.ForSet set : sets) {
      out.printf(
          "  GPU %s: %s GB/s straight to it (%s)%n    %s%n",
          set.gpu().address(), set.limit(), set.limit().reason(), address(set));
    }
    Table table = new Table(INDENT).row("SSDS", "REQUESTS OF", "UNIT", "AT WORK", "WHY");
    Set<Integer> told = new TreeSet<>();
    for (Choices.ForSet set : sets) {
      if (told.add(set.ssds().size())) {
        for (StripeUnit unit : set.units()) {
          table.row(
              set.ssds().size(),
              Sizes.format(unit.requestBytes()),
              Sizes.format(unit.unitBytes()),
              unit.busy(),
              unit.reason());
        }
      }
    }
    table.print(out);
  }

  /** As they are bound now; an SSD that the kernel has is bound to vfio-pci first. */
  private static String address(Choices.ForSet set) {
    return set.ssds().stream()
        .map(ssd -> (ssd.kmod() ? "kmod:" : "vfio:") + ssd.address())
        .collect(Collectors.joining(",", "stripe:", ";unit=…"));
  }
}
