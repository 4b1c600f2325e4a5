package io.gpunvme.tools.machine;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.storage.path.file.MountPoint;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Who uses the disks of an NVMe function, so that it must not be taken away. */
public final class DiskUse {
  /** Parts of something larger that nobody has put together yet. */
  private static final Set<String> MEMBERS =
      Set.of(
          "linux_raid_member",
          "isw_raid_member",
          "ddf_raid_member",
          "LVM2_member",
          "zfs_member",
          "bcache",
          "drbd");

  private final Machine machine;
  private final List<String> uses = new ArrayList<>();
  private final Set<String> seen = new HashSet<>();

  private DiskUse(Machine machine) {
    this.machine = machine;
  }

  /**
   * One sentence for each use, {@code /dev/nvme0n1p2 is mounted at /}; empty if nobody uses it. A
   * function without disks, as VFIO has it, is used by whoever has its driver's device node open.
   */
  public static List<String> of(Machine machine, PciAddress address) {
    DiskUse use = new DiskUse(machine);
    machine.disks(address).forEach(use::add);
    for (String disk : machine.diskNames(address)) {
      String controller = disk.replaceFirst("n\\d+$", "");
      use.addOpeners("/dev/" + controller);
      use.addOpeners("/dev/" + disk.replaceFirst("^nvme", "ng"));
    }
    machine.driverNodes(address).forEach(use::addOpeners);
    return use.uses.stream().distinct().toList();
  }

  /**
   * Refuses a function that somebody uses.
   *
   * @throws InvalidRequestException naming every use
   */
  public static void requireFree(Machine machine, PciAddress address) {
    requireFree(address, of(machine, address));
  }

  static void requireFree(PciAddress address, List<String> uses) {
    if (!uses.isEmpty()) {
      throw new InvalidRequestException(
          "%s is in use: %s; choose an SSD that nobody uses, or end these uses first"
              .formatted(address, String.join(", ", uses)));
    }
  }

  private void add(MachineDisk disk) {
    if (seen.add(disk.name())) {
      machine.withPartitions(disk).forEach(this::addPart);
    }
  }

  private void addPart(MachineDisk part) {
    String node = part.node();
    for (MountPoint mount : machine.mounts(part)) {
      String root = mount.target().equals("/") ? ", the root file system" : "";
      uses.add(node + " is mounted at " + mount.target() + root);
    }
    if (machine.swap(part)) {
      uses.add(node + " is in use as swap");
    }
    if (machine.inBtrfs(part) && machine.mounts(part).isEmpty()) {
      uses.add(node + " is part of a mounted btrfs");
    }
    for (String holder : part.holders()) {
      addHolder(node, holder);
    }
    if (part.holders().isEmpty() && MEMBERS.contains(part.signature())) {
      uses.add(node + " is a " + part.signature() + " that is not assembled");
    }
    addOpeners(node);
  }

  private void addHolder(String node, String name) {
    String title = machine.block(name).map(MachineDisk::title).orElse(name);
    String verb = name.startsWith("md") ? " is a member of " : " is held by ";
    uses.add(node + verb + title);
    machine.block(name).ifPresent(this::add);
  }

  private void addOpeners(String node) {
    machine.openers(node).forEach(process -> uses.add(node + " is open in " + process));
  }
}
