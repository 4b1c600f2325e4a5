package io.gpunvme.tools.doctor;

import io.gpunvme.tools.machine.DeviceNode;
import io.gpunvme.tools.machine.DiskUse;
import io.gpunvme.tools.machine.DriverBinding;
import io.gpunvme.tools.machine.IommuGroup;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.MachineFunction;
import io.gpunvme.tools.machine.PciLink;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/** The NVMe controllers, and whether one of them can be opened. */
final class SsdChecks {
  private static final Set<Way> VFIO = Way.of("vfio:");
  private static final Set<Way> KMOD = Way.of("kmod:");
  private static final Set<Way> SYSFS = Way.of("sysfs:");
  private static final Set<Way> ALL = Way.of("vfio:", "kmod:", "sysfs:");

  private SsdChecks() {}

  static List<Finding> of(Machine machine) {
    if (machine.ssds().isEmpty()) {
      return List.of(
          Finding.note(
                  "no-ssd",
                  "ssd",
                  "no NVMe controller on the PCI bus",
                  "everything works with the embedded controller: sim:…",
                  "")
              .blocking(ALL));
    }
    List<List<Finding>> perSsd = new ArrayList<>();
    machine.ssds().forEach(ssd -> perSsd.add(of(machine, ssd)));
    // One SSD that can be opened is enough: the state of the others is in nobody's way then.
    Set<Way> open = EnumSet.noneOf(Way.class);
    for (Way way : ALL) {
      if (perSsd.stream().anyMatch(all -> all.stream().noneMatch(f -> f.blocks().contains(way)))) {
        open.add(way);
      }
    }
    return perSsd.stream().flatMap(List::stream).map(f -> without(f, open)).toList();
  }

  private static Finding without(Finding finding, Set<Way> open) {
    Set<Way> rest = EnumSet.noneOf(Way.class);
    rest.addAll(finding.blocks());
    rest.removeAll(open);
    return finding.blocking(rest);
  }

  /** Those about one SSD. */
  static List<Finding> of(Machine machine, MachineFunction ssd) {
    List<Finding> found = new ArrayList<>();
    found.add(state(machine, ssd));
    nodes(machine, ssd, found);
    group(machine, ssd, found);
    link(ssd, found);
    return found;
  }

  private static Finding state(Machine machine, MachineFunction ssd) {
    String address = ssd.address().toString();
    List<String> uses = DiskUse.of(machine, ssd.address());
    if (!uses.isEmpty()) {
      return Finding.note(
              "ssd-in-use",
              address,
              String.join(", ", uses),
              "gpunvme leaves it alone: every command that takes a device refuses this one",
              "")
          .blocking(ALL);
    }
    if (ssd.vfio()) {
      return Finding.ok("ssd-vfio", address, "bound to vfio-pci: open it as vfio:" + address)
          .blocking(Way.of("kmod:", "sysfs:"));
    }
    if (ssd.kmod()) {
      return Finding.ok("ssd-kmod", address, "bound to gpunvme: open it as kmod:" + address)
          .blocking(Way.of("vfio:", "sysfs:"));
    }
    if (!ssd.driver().isEmpty()) {
      return Finding.note(
              "ssd-kernel-driver",
              address,
              "nobody uses it, but it is bound to the kernel's driver " + ssd.driver(),
              "gpunvme cannot open it until it is unbound from that driver",
              "gpunvme bind " + address + " (and gpunvme unbind " + address + " to give it back)")
          .blocking(ALL);
    }
    return Finding.note(
            "ssd-no-driver",
            address,
            "it has no driver",
            "it can be opened as sysfs:" + address + ",unsafe=true if no IOMMU translates for it",
            "gpunvme bind " + address + " for vfio:, gpunvme unbind " + address + " for the kernel")
        .blocking(Way.of("vfio:", "kmod:"));
  }

  /** Whether this user may open what its driver gives it away by. */
  private static void nodes(Machine machine, MachineFunction ssd, List<Finding> found) {
    String address = ssd.address().toString();
    String kind = ssd.kmod() ? "kmod:" : "vfio:";
    Set<Way> ways = ssd.kmod() ? KMOD : VFIO;
    for (DeviceNode node : machine.openedNodes(ssd.address())) {
      if (!node.there()) {
        found.add(
            Finding.problem(
                    "ssd-node-missing",
                    address,
                    "there is no " + node.path(),
                    "it cannot be opened as " + kind + address + " here",
                    inContainer(ssd) + "; elsewhere: udevadm trigger")
                .blocking(ways));
      } else if (!node.open()) {
        found.add(
            Finding.problem(
                    "ssd-node-denied",
                    address,
                    "this user may not open " + node.path() + " for reading and writing",
                    "it cannot be opened as " + kind + address + " without root",
                    permit(node.path()))
                .blocking(ways));
      }
    }
  }

  private static String inContainer(MachineFunction ssd) {
    return ssd.kmod()
        ? "in a container: start it with --device /dev/gpunvme"
        : "in a container: start it with --device /dev/vfio (--device /dev/iommu too where there is"
            + " one)";
  }

  /** One line for now, and what makes it last; the nodes that all functions share are for all. */
  private static String permit(String node) {
    if (node.equals("/dev/vfio/vfio") || node.equals("/dev/iommu")) {
      return "sudo chmod a+rw "
          + node
          + "; for good: KERNEL==\""
          + node.substring("/dev/".length())
          + "\", MODE=\"0666\" in /etc/udev/rules.d/60-gpunvme.rules";
    }
    if (node.startsWith("/dev/gpunvme/")) {
      return "sudo usermod -a -G gpunvme $USER, with the udev rule of the kernel module, and log in"
          + " again";
    }
    String subsystem = node.startsWith("/dev/vfio/devices/") ? "vfio-dev" : "vfio";
    return "sudo chown $USER "
        + node
        + ", after each bind; for good: SUBSYSTEM==\""
        + subsystem
        + "\", OWNER=\"your name\" in /etc/udev/rules.d/60-gpunvme.rules";
  }

  private static void group(Machine machine, MachineFunction ssd, List<Finding> found) {
    IommuGroup group = ssd.group();
    if (group == null) {
      return;
    }
    String address = ssd.address().toString();
    List<String> others = DriverBinding.othersInGroup(machine, ssd);
    if (!others.isEmpty()) {
      found.add(
          Finding.note(
                  "ssd-group",
                  address,
                  "in IOMMU group %s with %s".formatted(group.name(), String.join(", ", others)),
                  "VFIO hands out whole groups only: it refuses the SSD while the others are in"
                      + " use",
                  "put the SSD into another slot, or unbind the others too")
              .blocking(VFIO));
    }
    if (group.translated()) {
      String type = group.type().isEmpty() ? "" : " (" + group.type() + ")";
      found.add(
          Finding.ok("ssd-translated", address, "the IOMMU translates for it" + type)
              .blocking(SYSFS));
    }
  }

  private static void link(MachineFunction ssd, List<Finding> found) {
    PciLink link = ssd.link();
    if (link.known() && link.gigabytesPerSecond() < link.maxGigabytesPerSecond()) {
      found.add(
          Finding.note(
              "ssd-link",
              ssd.address().toString(),
              "its link runs at " + link,
              "at most %.1f of %.1f GB/s"
                  .formatted(link.gigabytesPerSecond(), link.maxGigabytesPerSecond()),
              "use a slot with enough lanes of its generation, reseat it, or check the firmware's"
                  + " lane settings"));
    }
  }
}
