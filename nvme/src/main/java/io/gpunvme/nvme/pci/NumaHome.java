package io.gpunvme.nvme.pci;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Uninterrupted;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.NumaCalls;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.SysFiles;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.NavigableSet;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * The NUMA node of a device, and the two things that are placed there: host memory that the device
 * uses, and our own threads that serve it.
 *
 * <p>A node is preferred, never demanded: memory comes from other nodes when it is full. What the
 * user has set (numactl, a cpuset) is never widened: where a memory policy is there already nothing
 * is placed, and threads keep to the processors that they have. Where there is one node only, or
 * none is known, nothing is done. {@link #toString} tells which of this holds.
 *
 * <p>Safe for all threads.
 */
public final class NumaHome {
  private static final System.Logger LOG = System.getLogger("io.gpunvme.nvme.pci");

  private static final Pattern NODE = Pattern.compile("node(?<number>\\d{1,4})");
  private static final Pattern CONTROLLER = Pattern.compile("nvme\\d+");
  private static final Pattern CPUS = Pattern.compile("(?<first>\\d{1,5})(-(?<last>\\d{1,5}))?");
  private static final int NONE_KNOWN = -1;

  /** Of what is on no PCI device of this machine. */
  public static final NumaHome NONE = nowhere("it is no device of this machine");

  /** Whether the thread is one of {@link #movable}. */
  private static final ThreadLocal<Boolean> MOVABLE = ThreadLocal.withInitial(() -> false);

  private static final Scope NOTHING = () -> {};

  private final int node;
  private final BitSet processors;
  private final boolean placesMemory;
  private final String text;
  private final AtomicBoolean warned = new AtomicBoolean();

  private NumaHome(int node, BitSet processors, boolean placesMemory, String text) {
    this.node = node;
    this.processors = processors;
    this.placesMemory = placesMemory;
    this.text = text;
  }

  private static NumaHome nowhere(String why) {
    return new NumaHome(NONE_KNOWN, new BitSet(), false, "no NUMA node: " + why);
  }

  // ---- which node

  /**
   * The home of a PCI function.
   *
   * @throws InvalidRequestException if the option names a node that is not there
   */
  public static NumaHome ofPci(HostPaths paths, PciAddress address, NumaOption option) {
    return choose(paths, address.toString(), option, () -> List.of(function(paths, address)));
  }

  /**
   * The home of the SSD that a block device or a partition is on. Devices over others (device
   * mapper, RAID) have one if all that they are on have the same.
   *
   * @param device major and minor number, {@code 259:1}
   * @throws InvalidRequestException if the option names a node that is not there
   */
  public static NumaHome ofBlockDevice(HostPaths paths, String device, NumaOption option) {
    Path folder = paths.sys().resolve("dev/block").resolve(device);
    return choose(paths, "block device " + device, option, () -> functionsUnder(folder));
  }

  /**
   * @param search finds the PCI functions that the device is or is on: folders in sysfs
   */
  private static NumaHome choose(
      HostPaths paths, String device, NumaOption option, Supplier<List<Path>> search) {
    NavigableSet<Integer> nodes = nodes(paths);
    NumaHome home =
        switch (option.kind()) {
          case OFF -> nowhere("numa=off");
          case AUTO -> nodes.size() < 2 ? onlyOne() : automatic(paths, nodes, device, search);
          case NODE -> named(paths, nodes, option.node());
        };
    LOG.log(Level.DEBUG, "{0}: {1}", device, home);
    return home;
  }

  private static NumaHome onlyOne() {
    return nowhere("this machine has only one");
  }

  private static NumaHome named(HostPaths paths, NavigableSet<Integer> nodes, int node) {
    if (!nodes.contains(node)) {
      throw new InvalidRequestException(
          "numa=%d: there is no such NUMA node; %s"
              .formatted(
                  node,
                  nodes.isEmpty()
                      ? "the kernel shows none"
                      : "there are "
                          + nodes.stream().map(String::valueOf).collect(Collectors.joining(", "))));
    }
    return nodes.size() < 2 ? onlyOne() : on(paths, node, "numa=" + node);
  }

  private static NumaHome automatic(
      HostPaths paths, NavigableSet<Integer> nodes, String device, Supplier<List<Path>> search) {
    Set<Integer> told =
        search.get().stream()
            .map(folder -> (int) SysFiles.number(folder.resolve("numa_node"), NONE_KNOWN))
            .collect(Collectors.toCollection(TreeSet::new));
    if (told.isEmpty() || told.contains(NONE_KNOWN)) {
      return nowhere("the kernel names none for " + device);
    }
    if (told.size() > 1) {
      return nowhere("the SSDs of " + device + " are on several");
    }
    int node = told.iterator().next();
    return nodes.contains(node)
        ? on(paths, node, "of " + device)
        : nowhere("the kernel names node " + node + " for " + device + ", which is not there");
  }

  private static Path function(HostPaths paths, PciAddress address) {
    return paths.sys().resolve("bus/pci/devices").resolve(address.toString());
  }

  /** The PCI functions that a block device is on. */
  private static List<Path> functionsUnder(Path device) {
    Path folder = SysFiles.real(device);
    while (folder != null) {
      // Of a partition the disk knows them.
      List<Path> below = SysFiles.children(folder.resolve("slaves"));
      if (!below.isEmpty()) {
        return functionsUnder(below);
      }
      if (SysFiles.name(folder).startsWith("nvme-subsys")) {
        // Of an SSD with several ports or controllers the kernel makes one disk.
        return functionsUnder(
            SysFiles.children(folder).stream()
                .filter(child -> CONTROLLER.matcher(SysFiles.name(child)).matches())
                .toList());
      }
      if (PciAddress.find(SysFiles.name(folder)).isPresent()
          && Files.exists(folder.resolve("numa_node"))) {
        return List.of(folder);
      }
      folder = folder.getParent();
    }
    return List.of();
  }

  private static List<Path> functionsUnder(List<Path> devices) {
    return devices.stream().flatMap(one -> functionsUnder(one).stream()).toList();
  }

  private static Path nodeFolder(HostPaths paths) {
    return paths.sys().resolve("devices/system/node");
  }

  private static NavigableSet<Integer> nodes(HostPaths paths) {
    NavigableSet<Integer> numbers = new TreeSet<>();
    for (String name : SysFiles.names(nodeFolder(paths))) {
      Matcher m = NODE.matcher(name);
      if (m.matches() && Integer.parseInt(m.group("number")) <= NumaCalls.MAX_NODE) {
        numbers.add(Integer.valueOf(m.group("number")));
      }
    }
    return numbers;
  }

  /** Reads a list of the kernel's: {@code 0-15,32-47}. What is no list names none. */
  static BitSet processors(String list) {
    BitSet all = new BitSet();
    for (String part : list.split(",", -1)) {
      Matcher m = CPUS.matcher(part);
      if (m.matches()) {
        int first = Integer.parseInt(m.group("first"));
        int last = m.group("last") == null ? first : Integer.parseInt(m.group("last"));
        all.set(first, Math.max(first, last + 1));
      }
    }
    return all;
  }

  // ---- what the kernel lets us do

  private static NumaHome on(HostPaths paths, int node, String why) {
    if (hasPolicy()) {
      return nowhere("this process has a memory policy already (numactl)");
    }
    BitSet processors =
        processors(SysFiles.text(nodeFolder(paths).resolve("node" + node).resolve("cpulist")));
    String memory = memoryRefusal(node);
    String threads = threadRefusal();
    List<String> text = new ArrayList<>();
    text.add("NUMA node " + node + " (" + why + ")");
    if (!memory.isEmpty()) {
      text.add("memory is not placed: " + memory);
    }
    if (!threads.isEmpty()) {
      processors.clear();
      text.add("threads are not placed: " + threads);
    } else if (!NumaCalls.affinity().intersects(processors)) {
      // Another thread may use others, and is placed by those.
      text.add("threads are not placed: the node has no processor that this thread may use");
    }
    return new NumaHome(node, processors, memory.isEmpty(), String.join("; ", text));
  }

  /** Where the kernel does not tell, nobody can have set one. */
  private static boolean hasPolicy() {
    try {
      return !NumaCalls.hasUsualMemory();
    } catch (PosixException e) {
      return false;
    }
  }

  private static String memoryRefusal(int node) {
    try {
      NumaCalls.preferNode(node);
      NumaCalls.useUsualMemory();
      return "";
    } catch (PosixException e) {
      return e.errno() == Errno.EINVAL
          ? "the node has no memory that this process may have"
          : refusal(e);
    }
  }

  private static String refusal(PosixException e) {
    return "the kernel refuses (" + Errno.name(e.errno()) + ")";
  }

  /**
   * Tries it with a thread of ours, and the processors that it has: those of the caller's stay what
   * the kernel has given it.
   */
  private static String threadRefusal() {
    String[] said = {"nobody could try"};
    Thread probe =
        Thread.ofPlatform().daemon().name("gpunvme-numa").start(() -> said[0] = ownProcessors());
    Uninterrupted.join(probe);
    return said[0];
  }

  private static String ownProcessors() {
    try {
      NumaCalls.setAffinity(NumaCalls.affinity());
      return "";
    } catch (PosixException e) {
      return refusal(e);
    }
  }

  /** The number of the node; -1 if nothing is placed. */
  public int node() {
    return node;
  }

  // ---- memory

  /** Ends when it is closed, by the thread that began it. */
  @FunctionalInterface
  public interface Scope extends AutoCloseable {
    @Override
    void close();
  }

  /**
   * Until the scope is closed, memory that the calling thread allocates and touches first is on the
   * node, while that has some. Does nothing in a virtual thread, whose carrier has the policy, and
   * where the thread has a policy already: the user's, or that of a scope around this.
   */
  public Scope memory() {
    if (!placesMemory || Thread.currentThread().isVirtual()) {
      return NOTHING;
    }
    try {
      if (!NumaCalls.hasUsualMemory()) {
        return NOTHING;
      }
      NumaCalls.preferNode(node);
      return this::useUsualMemory;
    } catch (RuntimeException | Error e) {
      warn("memory is not placed on", e);
      return NOTHING;
    }
  }

  private void useUsualMemory() {
    try {
      NumaCalls.useUsualMemory();
    } catch (RuntimeException | Error e) {
      warn("memory of a thread stays on", e);
    }
  }

  // ---- threads

  /**
   * Threads that serve this device all their life, on its node.
   *
   * @param factory makes platform threads
   */
  public ThreadFactory threads(ThreadFactory factory) {
    return processors.isEmpty()
        ? factory
        : work ->
            factory.newThread(
                () -> {
                  hold();
                  work.run();
                });
  }

  /**
   * Threads of ours that serve several devices in turn, or run code of others in between: {@link
   * #thread} places them for a while.
   *
   * @param factory makes platform threads
   */
  public static ThreadFactory movable(ThreadFactory factory) {
    return work ->
        factory.newThread(
            () -> {
              MOVABLE.set(true);
              work.run();
            });
  }

  /**
   * Until the scope is closed, the calling thread is on the node if it is one of {@link #movable}.
   * Any other is a caller's, and stays where it is.
   */
  public Scope thread() {
    return processors.isEmpty() || !MOVABLE.get() ? NOTHING : hold();
  }

  /** Holds the thread to those of its processors that are the node's; none: it stays. */
  private Scope hold() {
    try {
      BitSet before = NumaCalls.affinity();
      BitSet here = (BitSet) before.clone();
      here.and(processors);
      if (here.isEmpty() || here.equals(before)) {
        return NOTHING;
      }
      NumaCalls.setAffinity(here);
      return () -> letGo(before);
    } catch (RuntimeException | Error e) {
      warn("threads are not placed on", e);
      return NOTHING;
    }
  }

  private void letGo(BitSet before) {
    try {
      NumaCalls.setAffinity(before);
    } catch (RuntimeException | Error e) {
      warn("a thread stays on", e);
    }
  }

  /**
   * It was allowed when this was opened: what the process may have was changed since. Told once,
   * and never thrown: whoever is placed has memory to keep and work to do.
   */
  private void warn(String what, Throwable e) {
    if (warned.compareAndSet(false, true)) {
      LOG.log(Level.WARNING, what + " NUMA node " + node + ": " + e);
    }
  }

  /** What was chosen, and what of it could not be done, in one line. */
  @Override
  public String toString() {
    return text;
  }
}
