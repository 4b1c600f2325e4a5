package io.gpunvme.tools.machine;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.storage.path.file.MountPoint;
import io.gpunvme.storage.path.file.MountScan;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.stream.Stream;

/**
 * A picture of this machine, taken once. Nothing is opened but files of the kernel and of udev, and
 * nothing is changed. Immutable.
 */
public final class Machine {
  private final Map<PciAddress, MachineFunction> functions;
  private final List<NumaNode> nodes;
  private final Map<PciAddress, List<String>> disks;
  private final Map<PciAddress, List<String>> driverNodes;
  private final Map<PciAddress, List<DeviceNode>> opened;
  private final Map<String, MachineDisk> blocks;
  private final List<MountPoint> mounts;
  private final List<String> swaps;
  private final List<String> btrfs;
  private final Map<String, List<String>> openNodes;
  private final KernelFacts kernel;
  private final SoftwareFacts software;

  private Machine(HostPaths paths, Path root, Predicate<Path> mayOpen) {
    functions = Collections.unmodifiableMap(PciScan.read(paths));
    nodes = NumaNode.read(paths);
    disks = new TreeMap<>();
    driverNodes = new TreeMap<>();
    opened = new TreeMap<>();
    for (MachineFunction ssd : ssds()) {
      disks.put(ssd.address(), BlockScan.disks(paths, ssd.address()));
      driverNodes.put(ssd.address(), DriverNodes.all(paths, ssd));
      opened.put(ssd.address(), DriverNodes.opened(paths, ssd, mayOpen));
    }
    blocks = BlockScan.read(paths, SoftwareFacts.udevDatabase(root));
    mounts = MountScan.mounts(paths);
    swaps = MountScan.swaps(paths);
    btrfs = MountScan.btrfs(paths);
    openNodes = OpenNodes.read(paths);
    kernel = KernelFacts.read(paths);
    software = SoftwareFacts.read(paths, root);
  }

  /** This machine, with udev's database and libraries in their usual places. */
  public static Machine read(HostPaths paths) {
    return read(paths, Path.of("/"));
  }

  /**
   * A machine.
   *
   * @param root what {@code /run} and {@code /usr} lie in
   */
  public static Machine read(HostPaths paths, Path root) {
    return read(paths, root, node -> Files.isReadable(node) && Files.isWritable(node));
  }

  /**
   * A machine.
   *
   * @param root what {@code /run} and {@code /usr} lie in
   * @param mayOpen whether this process may open a device node for reading and writing
   */
  static Machine read(HostPaths paths, Path root, Predicate<Path> mayOpen) {
    return new Machine(paths, root, mayOpen);
  }

  // ---- PCI

  /** All functions, by address. */
  public Collection<MachineFunction> functions() {
    return functions.values();
  }

  /** The function at an address, if there is one. */
  public Optional<MachineFunction> find(PciAddress address) {
    return Optional.ofNullable(functions.get(address));
  }

  /**
   * The function at an address.
   *
   * @throws InvalidRequestException if there is none
   */
  public MachineFunction function(PciAddress address) {
    return find(address)
        .orElseThrow(
            () ->
                new InvalidRequestException(
                    "no PCI function " + address + " in this machine (gpunvme list shows them)"));
  }

  /** NVMe controllers, by address. */
  public List<MachineFunction> ssds() {
    return functions.values().stream().filter(MachineFunction::nvme).toList();
  }

  /** GPUs that CUDA may know, by address. */
  public List<MachineFunction> gpus() {
    return functions.values().stream().filter(MachineFunction::nvidiaGpu).toList();
  }

  /** Every GPU with every SSD. */
  public List<GpuSsdPair> pairs() {
    List<GpuSsdPair> pairs = new ArrayList<>();
    for (MachineFunction gpu : gpus()) {
      ssds().forEach(ssd -> pairs.add(new GpuSsdPair(gpu, ssd, way(gpu, ssd))));
    }
    return pairs;
  }

  /** The way between two functions. */
  public PciWay way(MachineFunction a, MachineFunction b) {
    return PciWay.between(this, a, b);
  }

  /**
   * What the slowest link between a function and the root complex carries in one direction, GB/s
   * before the headers of packets; 0 if a link does not say.
   */
  public double toMemory(MachineFunction function) {
    return PciWay.toMemory(this, function);
  }

  /** The link above a function. */
  public LinkAbove linkAbove(MachineFunction function) {
    return LinkAbove.of(this, function);
  }

  // ---- processors

  /** NUMA nodes, by number; none if the kernel knows nothing of them. */
  public List<NumaNode> nodes() {
    return nodes;
  }

  // ---- disks

  /** What the kernel makes of an NVMe function: disks by name, none without its driver. */
  public List<MachineDisk> disks(PciAddress function) {
    return disks.getOrDefault(function, List.of()).stream()
        .flatMap(name -> block(name).stream())
        .toList();
  }

  /** The names of the disks of an NVMe function, also of those that have no entry of their own. */
  public List<String> diskNames(PciAddress function) {
    return disks.getOrDefault(function, List.of());
  }

  Optional<MachineDisk> block(String name) {
    return Optional.ofNullable(blocks.get(name));
  }

  /** A disk with its partitions, or something else alone. */
  Stream<MachineDisk> withPartitions(MachineDisk disk) {
    return Stream.concat(
        Stream.of(disk), blocks.values().stream().filter(b -> b.disk().equals(disk.name())));
  }

  /** File systems mounted from a block device. */
  public List<MountPoint> mounts(MachineDisk device) {
    return mounts.stream()
        .filter(m -> m.number().equals(device.number()) || m.source().equals(device.node()))
        .toList();
  }

  boolean swap(MachineDisk device) {
    return swaps.contains(device.name());
  }

  boolean inBtrfs(MachineDisk device) {
    return btrfs.contains(device.name());
  }

  /** The nodes through which its driver gives a function to user space; mostly none. */
  List<String> driverNodes(PciAddress function) {
    return driverNodes.getOrDefault(function, List.of());
  }

  /** The device nodes that opening a function as {@code vfio:} or {@code kmod:} opens. */
  public List<DeviceNode> openedNodes(PciAddress function) {
    return opened.getOrDefault(function, List.of());
  }

  /** Who has a device node open, {@code process 812 (qemu)}. */
  List<String> openers(String node) {
    return openNodes.getOrDefault(node, List.of());
  }

  // ---- the rest

  /** The running kernel. */
  public KernelFacts kernel() {
    return kernel;
  }

  /** Drivers and libraries. */
  public SoftwareFacts software() {
    return software;
  }
}
