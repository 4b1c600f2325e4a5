package io.gpunvme.cli;

import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.tools.machine.DiskUse;
import io.gpunvme.tools.machine.GpuSsdPair;
import io.gpunvme.tools.machine.IommuGroup;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.MachineDisk;
import io.gpunvme.tools.machine.MachineFunction;
import io.gpunvme.tools.machine.PciBar;
import io.gpunvme.tools.machine.PciLink;
import io.gpunvme.tools.machine.PciWay;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The SSDs and GPUs of a machine, and the links between them, as {@code gpunvme list} prints them.
 */
final class MachineListing {
  private static final int INDENT = 2;
  private static final String NONE = "-";

  private final Machine machine;
  private final List<MachineFunction> functions;

  MachineListing(Machine machine) {
    this.machine = machine;
    functions = machine.functions().stream().filter(f -> f.nvme() || f.display()).toList();
  }

  // ---- text

  void print(PrintStream out) {
    if (machine.ssds().isEmpty()) {
      out.println("No NVMe function on the PCI bus.");
    }
    if (machine.gpus().isEmpty()) {
      out.println("No NVIDIA GPU on the PCI bus.");
    }
    if (!functions.isEmpty()) {
      printFunctions(out);
    }
    if (!machine.pairs().isEmpty()) {
      out.println();
      printPairs(out);
    }
  }

  private void printFunctions(PrintStream out) {
    out.println("On the PCI bus:");
    Table table =
        new Table(INDENT)
            .row("ADDRESS", "KIND", "ID", "DRIVER", "GROUP", "LINK", "NUMA", "MODEL", "USE");
    for (MachineFunction f : functions) {
      IommuGroup group = f.group();
      table.row(
          f.address(),
          kind(f),
          f.id(),
          f.driver().isEmpty() ? "none" : f.driver(),
          group == null ? NONE : group.name(),
          f.link(),
          f.numaNode() < 0 ? NONE : Integer.toString(f.numaNode()),
          f.model().isEmpty() ? NONE : f.model(),
          use(f));
    }
    table.print(out);
  }

  private static String kind(MachineFunction function) {
    return function.nvme() ? "ssd" : function.nvidiaGpu() ? "gpu" : "display";
  }

  private String use(MachineFunction function) {
    if (!function.nvme()) {
      return NONE;
    }
    List<String> uses = DiskUse.of(machine, function.address());
    if (!uses.isEmpty()) {
      return String.join(", ", uses);
    }
    List<String> disks = machine.diskNames(function.address());
    return disks.isEmpty() ? "free" : "free: " + String.join(" ", disks);
  }

  private void printPairs(PrintStream out) {
    out.println("Between GPUs and SSDs (GB/s: the highest rate of the slowest link on the way):");
    Table table = new Table(INDENT).row("GPU", "SSD", "GB/s", "SLOWEST ABOVE", "MEET AT");
    for (GpuSsdPair pair : machine.pairs()) {
      PciWay way = pair.way();
      PciAddress slowest = way.bottleneck();
      table.row(
          pair.gpu().address(),
          pair.ssd().address(),
          slowest == null ? NONE : String.format(Locale.ROOT, "%.1f", way.gigabytesPerSecond()),
          slowest == null ? NONE : slowest,
          way.route() + way.meeting().map(at -> " " + at).orElse(""));
    }
    table.print(out);
  }

  // ---- JSON

  List<Object> functionsJson() {
    List<Object> all = new ArrayList<>();
    for (MachineFunction f : functions) {
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("address", f.address());
      one.put("kind", kind(f));
      one.put("id", f.id());
      one.put("driver", orNull(f.driver()));
      one.put("driver_override", orNull(f.driverOverride()));
      one.put("model", f.model());
      one.put("uuid", orNull(f.uuid()));
      one.put("iommu_group", group(f.group()));
      one.put("link", link(f.link()));
      one.put("numa_node", f.numaNode() < 0 ? null : f.numaNode());
      one.put("bars", f.bars().stream().map(MachineListing::bar).toList());
      one.put("ports_above", f.parents());
      if (f.nvme()) {
        one.put("block_devices", machine.diskNames(f.address()));
        one.put("bytes", machine.disks(f.address()).stream().mapToLong(MachineDisk::bytes).sum());
        one.put("uses", DiskUse.of(machine, f.address()));
      }
      all.add(one);
    }
    return all;
  }

  List<Object> pairsJson() {
    List<Object> all = new ArrayList<>();
    for (GpuSsdPair pair : machine.pairs()) {
      Map<String, Object> one = new LinkedHashMap<>();
      PciWay way = pair.way();
      one.put("gpu", pair.gpu().address());
      one.put("ssd", pair.ssd().address());
      one.put("meet", way.route().name().toLowerCase(Locale.ROOT));
      one.put("common_port", way.common());
      PciAddress slowest = way.bottleneck();
      one.put("gb_per_s", slowest == null ? null : way.gigabytesPerSecond());
      one.put("slowest_link_above", slowest);
      one.put("acs_redirects", way.redirected());
      all.add(one);
    }
    return all;
  }

  private static @Nullable String orNull(String text) {
    return text.isEmpty() ? null : text;
  }

  private static @Nullable Map<String, Object> group(@Nullable IommuGroup group) {
    if (group == null) {
      return null;
    }
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("name", group.name());
    one.put("type", orNull(group.type()));
    one.put("members", group.members());
    return one;
  }

  private static @Nullable Map<String, Object> link(PciLink link) {
    if (!link.known()) {
      return null;
    }
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("gt_per_s", link.speed());
    one.put("width", link.width());
    one.put("gb_per_s", link.gigabytesPerSecond());
    one.put("max_gt_per_s", link.maxSpeed());
    one.put("max_width", link.maxWidth());
    one.put("max_gb_per_s", link.maxGigabytesPerSecond());
    return one;
  }

  private static Map<String, Object> bar(PciBar bar) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("index", bar.index());
    one.put("bytes", bar.bytes());
    one.put("size", Sizes.format(bar.bytes()));
    one.put("memory", bar.memory());
    one.put("prefetchable", bar.prefetchable());
    return one;
  }
}
