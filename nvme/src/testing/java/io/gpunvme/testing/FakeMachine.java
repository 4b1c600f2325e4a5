package io.gpunvme.testing;

import io.gpunvme.ffi.SysFiles;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.nvme.pci.NumaOption;
import io.gpunvme.nvme.pci.PciAddress;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;

/**
 * A tree that looks like a machine's {@code /sys}, {@code /proc}, {@code /dev} and {@code /run}.
 */
public final class FakeMachine {
  public static final int NVME = 0x010802;
  public static final int GPU = 0x030200;
  public static final int BRIDGE = 0x060400;
  public static final int NVIDIA = 0x10DE;

  private final Path root;
  private final Set<Path> denied = new HashSet<>();
  private String hostBridge = "0000:00";

  public FakeMachine(Path root) {
    this.root = root;
    write("proc/sys/kernel/osrelease", "6.1.0-18-amd64");
    write("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet");
    write("proc/self/status", "Name:\tjava\nUid:\t0\t0\t0\t0\n");
    write(
        "proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
            + "Max locked memory         8388608              8388608              bytes     \n");
    write("proc/self/mountinfo", "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n");
    write("proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
    folder("dev");
    folder("run/lock");
  }

  public Path root() {
    return root;
  }

  public HostPaths paths() {
    return new HostPaths(root.resolve("sys"), root.resolve("dev"), root.resolve("proc"));
  }

  /** Whether this process may open a device node. */
  public boolean mayOpen(Path node) {
    return !denied.contains(node);
  }

  /** This process may not open a device node. */
  public FakeMachine denied(String node) {
    denied.add(root.resolve(node));
    return this;
  }

  // ---- anything

  public FakeMachine write(String file, String text) {
    try {
      Path path = root.resolve(file);
      Files.createDirectories(path.getParent());
      Files.writeString(path, text);
      return this;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  public FakeMachine folder(String name) {
    try {
      Files.createDirectories(root.resolve(name));
      return this;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** A link at {@code name} to a place in the tree; replaces one that is there. */
  public FakeMachine link(String name, String target) {
    return linkTo(name, root.resolve(target));
  }

  public FakeMachine linkTo(String name, Path target) {
    try {
      Path path = root.resolve(name);
      Files.createDirectories(path.getParent());
      Files.deleteIfExists(path);
      Files.createSymbolicLink(path, target);
      return this;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  // ---- processors

  /** A NUMA node with its processors, memory and socket. */
  public FakeMachine node(int number, String cpus, long kib, int socket) {
    String place = "sys/devices/system/node/node" + number;
    write(place + "/cpulist", cpus + "\n");
    write(place + "/meminfo", "Node %d MemTotal:  %d kB\n".formatted(number, kib));
    return write(
        "sys/devices/system/cpu/cpu" + cpus.split("[-,]", -1)[0] + "/topology/physical_package_id",
        socket + "\n");
  }

  /** The home of an SSD on node 0 of two: what is placed there is held to this processor. */
  public NumaHome home(int processor) {
    String ssd = "0000:01:00.0";
    node(0, Integer.toString(processor), 1 << 20, 0).node(1, "4000", 1 << 20, 1);
    function("", ssd, NVME, 0x144D).numa(ssd, 0);
    return NumaHome.ofPci(paths(), pci(ssd), NumaOption.AUTO);
  }

  // ---- PCI

  /** The functions that are added from now on are below this host bridge: {@code 0000:00}. */
  public FakeMachine hostBridge(String domainAndBus) {
    hostBridge = domainAndBus;
    return this;
  }

  /**
   * A function below {@code parents}, the root port first: {@code 0000:00:01.0/0000:01:00.0}.
   *
   * @param parents empty for a function of the root complex
   */
  public FakeMachine function(String parents, String address, int classCode, int vendor) {
    String place =
        "sys/devices/pci" + hostBridge + "/" + (parents.isEmpty() ? "" : parents + "/") + address;
    write(place + "/class", "0x%06x\n".formatted(classCode));
    write(place + "/vendor", "0x%04x\n".formatted(vendor));
    write(place + "/device", "0xa80c\n");
    write(place + "/driver_override", "(null)\n");
    return link(at(address), place);
  }

  public static String at(String address) {
    return "sys/bus/pci/devices/" + address;
  }

  public FakeMachine speed(String address, String speed, int width, String maxSpeed, int maxWidth) {
    write(at(address) + "/current_link_speed", speed + " GT/s PCIe\n");
    write(at(address) + "/current_link_width", width + "\n");
    write(at(address) + "/max_link_speed", maxSpeed + " GT/s PCIe\n");
    return write(at(address) + "/max_link_width", maxWidth + "\n");
  }

  /** At its best. */
  public FakeMachine speed(String address, String speed, int width) {
    return speed(address, speed, width, speed, width);
  }

  public FakeMachine numa(String address, int node) {
    return write(at(address) + "/numa_node", node + "\n");
  }

  public FakeMachine driver(String name) {
    return folder("sys/bus/pci/drivers/" + name);
  }

  /** Binds a function; the driver comes into being. */
  public FakeMachine driver(String address, String name) {
    driver(name);
    link(at(address) + "/driver", "sys/bus/pci/drivers/" + name);
    return vfioNodes(address);
  }

  public FakeMachine unbind(String address) {
    try {
      Files.deleteIfExists(root.resolve(at(address) + "/driver"));
      return this;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Puts functions into an IOMMU group; the IOMMU comes into being. */
  public FakeMachine group(String name, String type, String... members) {
    folder("sys/class/iommu/dmar0");
    write("sys/kernel/iommu_groups/" + name + "/type", type + "\n");
    for (String member : members) {
      link("sys/kernel/iommu_groups/" + name + "/devices/" + member, at(member));
      link(at(member) + "/iommu_group", "sys/kernel/iommu_groups/" + name);
      vfioNodes(member);
    }
    return this;
  }

  /** The nodes that the kernel makes for a function in a group once vfio-pci has it. */
  private FakeMachine vfioNodes(String address) {
    String group = SysFiles.linkName(root.resolve(at(address) + "/iommu_group"));
    String driver = SysFiles.linkName(root.resolve(at(address) + "/driver"));
    if (driver.equals("vfio-pci") && !group.isEmpty()) {
      write("dev/vfio/vfio", "").write("dev/vfio/" + group, "");
    }
    return this;
  }

  /** Configuration space with an ACS capability whose control register is {@code control}. */
  public FakeMachine accessControl(String address, int control) {
    ByteBuffer space = ByteBuffer.allocate(4096).order(ByteOrder.LITTLE_ENDIAN);
    // Advanced error reporting first, so that the chain is followed.
    space.putInt(0x100, 0x1 | 1 << 16 | 0x148 << 20);
    space.putInt(0x148, 0xD | 1 << 16);
    space.putShort(0x148 + 6, (short) control);
    try {
      Files.write(root.resolve(at(address) + "/config"), space.array());
      return this;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** An SSD with one namespace, held by the kernel's driver. */
  public FakeMachine ssd(String parents, String address, int number) {
    function(parents, address, NVME, 0x144D);
    driver(address, "nvme");
    String disk = "nvme" + number + "n1";
    write(at(address) + "/nvme/nvme" + number + "/model", "Some SSD 1TB   \n");
    folder(at(address) + "/nvme/nvme" + number + "/" + disk);
    write(
        at(address) + "/resource",
        "0x00000000fc000000 0x00000000fc003fff 0x0000000000140204\n"
            + "0x0000000000000000 0x0000000000000000 0x0000000000000000\n");
    return disk(disk, "259:" + 10 * number);
  }

  /** A GPU whose memory shows through a window of 32 GiB. */
  public FakeMachine gpu(String parents, String address) {
    function(parents, address, GPU, NVIDIA);
    return write(
        at(address) + "/resource",
        "0x00000000fa000000 0x00000000faffffff 0x0000000000040200\n"
            + "0x0000004000000000 0x00000047ffffffff 0x000000000014220c\n");
  }

  // ---- disks

  public FakeMachine disk(String name, String number) {
    write("sys/block/" + name + "/dev", number + "\n");
    return write("sys/block/" + name + "/size", "2097152\n");
  }

  public FakeMachine partition(String disk, String name, String number) {
    String place = "sys/block/" + disk + "/" + name;
    write(place + "/partition", "1\n");
    write(place + "/dev", number + "\n");
    return write(place + "/size", "1048576\n");
  }

  public FakeMachine holder(String place, String holder) {
    return folder("sys/block/" + place + "/holders/" + holder);
  }

  public FakeMachine mount(String number, String source, String target, String type) {
    String line = "40 22 %s / %s rw shared:2 - %s %s rw%n".formatted(number, target, type, source);
    return append("proc/self/mountinfo", line);
  }

  public FakeMachine append(String file, String text) {
    try {
      return write(file, Files.readString(root.resolve(file)) + text);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** A process that has a node open. */
  public FakeMachine opener(int process, String name, String node) {
    write("proc/" + process + "/comm", name + "\n");
    return linkTo("proc/" + process + "/fd/7", Path.of(node));
  }

  // ---- whole machines

  /** No PCI Express, no SSD, no GPU. */
  public static FakeMachine laptopWithNothing(Path root) {
    return new FakeMachine(root).function("", "0000:00:02.0", 0x030000, 0x8086);
  }

  /**
   * Two switches below root ports of their own, each with a GPU and two SSDs, on a NUMA node each.
   */
  public static FakeMachine server(Path root) {
    FakeMachine machine = new FakeMachine(root).driver("vfio-pci");
    for (int i = 0; i < 2; i++) {
      String rootPort = "0000:00:0%d.0".formatted(i + 1);
      String up = "0000:%d1:00.0".formatted(i + 1);
      machine.function("", rootPort, BRIDGE, 0x8086).speed(rootPort, "32.0", 16);
      machine.function(rootPort, up, BRIDGE, 0x1000).speed(up, "32.0", 16);
      for (int slot = 0; slot < 3; slot++) {
        String down = "0000:%d2:0%d.0".formatted(i + 1, slot);
        String above = rootPort + "/" + up;
        int lanes = slot == 0 ? 16 : 4;
        machine.function(above, down, BRIDGE, 0x1000).speed(down, "32.0", lanes);
        machine.accessControl(down, 0);
        String address = "0000:%d%d:00.0".formatted(i + 1, slot + 3);
        if (slot == 0) {
          // Idle: it has lowered its speed.
          machine.gpu(above + "/" + down, address).speed(address, "2.5", 16, "32.0", 16);
          machine.driver(address, "nvidia");
        } else {
          machine.ssd(above + "/" + down, address, i * 2 + slot - 1);
          machine.speed(address, "16.0", 4, "16.0", 4);
        }
        machine.numa(address, i);
        machine.group("%d%d".formatted(i + 1, slot), "DMA-FQ", address);
      }
    }
    return machine;
  }

  public static PciAddress pci(String text) {
    return PciAddress.parse(text);
  }
}
