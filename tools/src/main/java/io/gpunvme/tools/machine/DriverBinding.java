package io.gpunvme.tools.machine;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Reason;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.SysFiles;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.pci.host.FunctionLock;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * Hands an NVMe function from its kernel driver to user space, and back.
 *
 * <p>It first records the function's driver below {@code /run/gpunvme}. The way back starts by
 * lifting the override. If the process is ended in between, {@link #unbind} or a reboot puts the
 * function back.
 */
public final class DriverBinding {
  /** An override that no driver answers to: the function stays without one. */
  public static final String NO_DRIVER = "none";

  /** Drivers of others in an IOMMU group that VFIO accepts; of bridges it accepts any. */
  private static final Set<String> HARMLESS = Set.of("", "vfio-pci", "pci-stub");

  private final HostPaths paths;
  private final Path root;
  private final Writer writer;

  /** Writes to the kernel's files; tests have a kernel of their own. */
  @FunctionalInterface
  interface Writer {
    void write(KernelWrite write) throws IOException;
  }

  /**
   * What is going to be done.
   *
   * @param function the function as it is now
   * @param target the driver that it is to have, empty for none or any
   * @param writes in this order; empty if nothing is to be done
   */
  public record Plan(MachineFunction function, String target, List<KernelWrite> writes) {
    /** Copies the list. */
    public Plan {
      writes = List.copyOf(writes);
    }
  }

  /**
   * For this machine.
   *
   * @param root what {@code /run} lies in
   */
  public DriverBinding(HostPaths paths, Path root) {
    this(paths, root, DriverBinding::toKernel);
  }

  DriverBinding(HostPaths paths, Path root, Writer writer) {
    this.paths = paths;
    this.root = root;
    this.writer = writer;
  }

  private static void toKernel(KernelWrite write) throws IOException {
    Files.write(
        write.file(),
        (write.text() + "\n").getBytes(StandardCharsets.US_ASCII),
        StandardOpenOption.WRITE);
  }

  // ---- to user space

  /**
   * Plans to give a function to vfio-pci.
   *
   * @throws InvalidRequestException if it is not an NVMe controller, in use, or VFIO cannot have
   *     it; the message names the obstacle and the fix
   */
  public Plan bind(Machine machine, PciAddress address) {
    MachineFunction function = requireNvme(machine, address);
    DiskUse.requireFree(machine, address);
    requireVfio(machine, function);
    requireGroup(machine, function);
    return function.vfio()
        ? new Plan(function, MachineFunction.VFIO_PCI, List.of())
        : takeAway(function, MachineFunction.VFIO_PCI);
  }

  /**
   * Plans to give a function to this project's kernel module.
   *
   * @throws InvalidRequestException if it is not an NVMe controller, in use, or the module is not
   *     loaded
   */
  public Plan bindToModule(Machine machine, PciAddress address) {
    MachineFunction function = requireNvme(machine, address);
    DiskUse.requireFree(machine, address);
    if (!machine.software().gpunvmeModule()) {
      throw new InvalidRequestException(
          "the kernel module gpunvme is not loaded; run: modprobe gpunvme, or scripts/kmod-build"
              + " and scripts/kmod-load (docs/kernel-module.md)");
    }
    return function.kmod()
        ? new Plan(function, MachineFunction.KMOD, List.of())
        : takeAway(function, MachineFunction.KMOD);
  }

  /**
   * Plans to leave a function without a driver, as {@code sysfs:} needs it.
   *
   * @throws InvalidRequestException if it is not an NVMe controller, in use, or behind an IOMMU
   *     that translates
   */
  public Plan release(Machine machine, PciAddress address) {
    MachineFunction function = requireNvme(machine, address);
    DiskUse.requireFree(machine, address);
    IommuGroup group = function.group();
    if (group != null && group.translated()) {
      throw new InvalidRequestException(
          "an IOMMU translates for %s, so sysfs: cannot drive it; bind it without --no-driver and use vfio:%s"
              .formatted(address, address));
    }
    return function.driver().isEmpty() && !function.driverOverride().isEmpty()
        ? new Plan(function, "", List.of())
        : takeAway(function, NO_DRIVER);
  }

  private static MachineFunction requireNvme(Machine machine, PciAddress address) {
    MachineFunction function = machine.function(address);
    if (!function.nvme()) {
      throw new InvalidRequestException(
          "%s is not an NVMe controller (class %06xh)".formatted(address, function.classCode()));
    }
    return function;
  }

  private static void requireVfio(Machine machine, MachineFunction function) {
    if (!machine.software().vfioPci()) {
      throw new InvalidRequestException("vfio-pci is not loaded; run: modprobe vfio-pci");
    }
    if (function.group() == null && !machine.software().noIommu()) {
      throw new InvalidRequestException(
          function.address()
              + " is in no IOMMU group, so VFIO cannot have it; turn the IOMMU on (firmware set-up,"
              + " and intel_iommu=on on the kernel command line), or work without its protection:"
              + " bind --no-driver and sysfs:"
              + function.address()
              + ",unsafe=true");
    }
  }

  private static void requireGroup(Machine machine, MachineFunction function) {
    IommuGroup group = function.group();
    List<String> others = othersInGroup(machine, function);
    if (group != null && !others.isEmpty()) {
      throw new InvalidRequestException(
          "other functions of IOMMU group %s have kernel drivers: %s; unbind them too, or put the SSD into a slot with a group of its own"
              .formatted(group.name(), String.join(", ", others)));
    }
  }

  /** Who keeps VFIO from having a function's IOMMU group: {@code 0000:02:00.0 (driver igb)}. */
  public static List<String> othersInGroup(Machine machine, MachineFunction function) {
    IommuGroup group = function.group();
    List<String> others = new ArrayList<>();
    if (group != null) {
      for (PciAddress member : group.members()) {
        Optional<MachineFunction> other = machine.find(member).filter(f -> !f.bridge());
        String driver = other.map(MachineFunction::driver).orElse("");
        if (!member.equals(function.address()) && !HARMLESS.contains(driver)) {
          others.add(member + " (driver " + driver + ")");
        }
      }
    }
    return others;
  }

  private Plan takeAway(MachineFunction function, String override) {
    List<KernelWrite> writes = new ArrayList<>();
    Path folder = folder(function.address());
    writes.add(new KernelWrite(folder.resolve("driver_override"), override));
    if (!function.driver().isEmpty()) {
      writes.add(new KernelWrite(driver(function.driver()), function.address().toString()));
    }
    if (!override.equals(NO_DRIVER)) {
      writes.add(new KernelWrite(probe(), function.address().toString()));
      return new Plan(function, override, writes);
    }
    return new Plan(function, "", writes);
  }

  // ---- and back

  /**
   * Plans to give a function back to the driver that it would have without us. Nothing is to be
   * done if it is neither bound for user space nor reserved.
   *
   * @throws InvalidRequestException if it is not an NVMe controller, or a process drives it
   */
  public Plan unbind(Machine machine, PciAddress address) {
    MachineFunction function = requireNvme(machine, address);
    String old = remembered(address);
    if (!function.userSpace()
        && function.driverOverride().isEmpty()
        && !function.driver().isEmpty()) {
      return new Plan(function, function.driver(), List.of());
    }
    if (function.userSpace()) {
      DiskUse.requireFree(machine, address);
    }
    List<KernelWrite> writes = new ArrayList<>();
    writes.add(new KernelWrite(folder(address).resolve("driver_override"), ""));
    if (function.userSpace()) {
      writes.add(new KernelWrite(driver(function.driver()), address.toString()));
    }
    boolean away = function.userSpace() || function.driver().isEmpty();
    if (away) {
      writes.add(new KernelWrite(probe(), address.toString()));
    }
    return new Plan(function, away ? old : function.driver(), writes);
  }

  // ---- doing it

  /**
   * Does what was planned for {@link #bind}, {@link #bindToModule} or {@link #release}.
   *
   * @throws InvalidRequestException if the kernel itself uses a disk of the function, or another
   *     gpunvme has it
   * @throws DriverBindingException if rights are missing or the kernel does not do it; what had
   *     been done is taken back as far as the kernel lets us
   */
  public void bind(Machine machine, Plan plan) throws DriverBindingException {
    if (plan.writes().isEmpty()) {
      return;
    }
    requireRoot(machine, plan);
    try (FunctionLock lock = FunctionLock.take(paths, plan.function().address())) {
      requireUnclaimed(machine, plan.function());
      remember(plan.function());
      try {
        write(plan);
        requireDriver(plan);
      } catch (DriverBindingException e) {
        takeBack(plan, e);
        throw e;
      }
    }
  }

  /**
   * Does what was planned for {@link #unbind}.
   *
   * @throws InvalidRequestException if another gpunvme has it
   * @throws DriverBindingException if rights are missing or the kernel does not do it
   */
  public void unbind(Machine machine, Plan plan) throws DriverBindingException {
    if (!plan.writes().isEmpty()) {
      requireRoot(machine, plan);
      try (FunctionLock lock = FunctionLock.take(paths, plan.function().address())) {
        write(plan);
        requireDriver(plan);
      }
    }
    try {
      Files.deleteIfExists(memory(plan.function().address()));
    } catch (IOException e) {
      throw new DriverBindingException(
          memory(plan.function().address()) + " cannot be deleted: " + Reason.of(e), e);
    }
  }

  /** The driver that a function has now, empty for none. */
  public String currentDriver(PciAddress address) {
    return SysFiles.linkName(folder(address).resolve("driver"));
  }

  private static void requireRoot(Machine machine, Plan plan) throws DriverBindingException {
    if (!machine.kernel().root()) {
      throw new DriverBindingException(
          "%s: only root may change drivers; run this with sudo, or see the writes with --dry-run"
              .formatted(plan.function().address()));
    }
  }

  /**
   * Opens the disks alone, which the kernel refuses while anything, in any container, has them.
   * Only done when they are to be taken away: for that moment nobody else could mount them.
   */
  private void requireUnclaimed(Machine machine, MachineFunction function) {
    for (MachineDisk disk : machine.disks(function.address())) {
      Path node = paths.dev().resolve(disk.name());
      try {
        int flags = Posix.O_RDONLY | Posix.O_EXCL | Posix.O_CLOEXEC;
        Posix.close(Posix.open(node.toString(), flags, 0));
      } catch (PosixException e) {
        if (e.errno() == Errno.EBUSY) {
          DiskUse.requireFree(
              function.address(), List.of(disk.node() + " is claimed inside the kernel"));
        }
      }
    }
  }

  private void write(Plan plan) throws DriverBindingException {
    for (KernelWrite write : plan.writes()) {
      try {
        writer.write(write);
      } catch (IOException e) {
        throw new DriverBindingException(
            "the kernel did not take '%s': %s".formatted(write, e.getMessage()), e);
      }
    }
  }

  private void requireDriver(Plan plan) throws DriverBindingException {
    PciAddress address = plan.function().address();
    String now = currentDriver(address);
    if (!plan.target().isEmpty() && !now.equals(plan.target())) {
      throw new DriverBindingException(
          "%s has %s, not %s; the kernel log says why (dmesg | tail), and modprobe %s may help"
              .formatted(
                  address,
                  now.isEmpty() ? "no driver now" : "driver " + now + " now",
                  plan.target(),
                  plan.target()));
    }
  }

  private void takeBack(Plan plan, DriverBindingException reason) {
    PciAddress address = plan.function().address();
    try {
      writer.write(new KernelWrite(folder(address).resolve("driver_override"), ""));
      if (currentDriver(address).isEmpty()) {
        writer.write(new KernelWrite(probe(), address.toString()));
      }
      Files.deleteIfExists(memory(address));
    } catch (IOException e) {
      reason.addSuppressed(e);
    }
  }

  // ---- what it had

  private Path memory(PciAddress address) {
    return root.resolve("run/gpunvme").resolve(address + ".driver");
  }

  /** The driver that a function had before {@link #bind}; empty for none, or if not known. */
  String remembered(PciAddress address) {
    return SysFiles.text(memory(address));
  }

  private void remember(MachineFunction function) throws DriverBindingException {
    Path file = memory(function.address());
    try {
      Files.createDirectories(file.resolveSibling(""));
      if (!function.userSpace()) {
        Files.writeString(file, function.driver() + "\n");
      }
    } catch (IOException e) {
      throw new DriverBindingException(file + " cannot be written: " + e.getMessage(), e);
    }
  }

  // ---- the kernel's files

  private Path folder(PciAddress address) {
    return paths.sys().resolve("bus/pci/devices").resolve(address.toString());
  }

  private Path driver(String name) {
    return paths.sys().resolve("bus/pci/drivers").resolve(name).resolve("unbind");
  }

  private Path probe() {
    return paths.sys().resolve("bus/pci/drivers_probe");
  }
}
