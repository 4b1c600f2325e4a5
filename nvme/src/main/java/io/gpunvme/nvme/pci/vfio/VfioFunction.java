package io.gpunvme.nvme.pci.vfio;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.HostMemory;
import io.gpunvme.nvme.memory.PeerMemory;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.pci.host.DeviceFile;
import io.gpunvme.nvme.pci.host.FileConfigSpace;
import io.gpunvme.nvme.pci.host.FunctionLock;
import io.gpunvme.nvme.pci.host.HugePages;
import io.gpunvme.nvme.pci.host.MappedBar;
import io.gpunvme.nvme.pci.host.PciSysfs;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A PCI function that the kernel's vfio-pci driver has, given to this process.
 *
 * <p>The kernel resets it when it is opened and when it is closed, and whenever this process ends.
 * When the kernel wants the device back (it is being unplugged), registers read all ones from then
 * on and DMA stops, so that its user notices and closes it. Other interrupts are not used. Safe for
 * all threads.
 */
public final class VfioFunction implements PciFunction {
  private static final System.Logger LOG = System.getLogger("io.gpunvme.nvme.pci.vfio");
  private static final int BARS = 6;

  private final PciAddress address;
  private final FunctionLock lock;
  private final Access access;
  private final VfioDevice device;
  private final FileConfigSpace config;
  private final @Nullable MappedBar[] bars = new MappedBar[BARS];
  private final NumaHome home;
  private final HugePages hugePages;
  private final @Nullable RemovalWatch removal;
  private volatile boolean closed;

  private VfioFunction(PciAddress address, NumaHome home, FunctionLock lock, Access access) {
    this.address = address;
    this.home = home;
    this.hugePages = new HugePages(home);
    this.lock = lock;
    this.access = access;
    this.device = new VfioDevice(access.device(), name());
    this.config = device.config();
    // The kernel answers a load from a mapped BAR with a signal while memory space is off.
    int command = config.read(ConfigSpace.COMMAND, 2);
    int on = ConfigSpace.COMMAND_MEMORY | ConfigSpace.COMMAND_INTX_DISABLE;
    config.write(ConfigSpace.COMMAND, 2, command & ~ConfigSpace.COMMAND_BUS_MASTER | on);
    try {
      for (int i = 0; i < BARS; i++) {
        bars[i] = device.bar(i);
      }
      this.removal = RemovalWatch.start(device.file(), address.toString(), this::removed);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::closeBars);
      throw e;
    }
  }

  /**
   * Opens a function.
   *
   * @throws InvalidRequestException if it cannot be opened; the message says why and what helps
   */
  public static VfioFunction open(PciAddress address, VfioOptions options) {
    PciSysfs function = PciSysfs.ofSsd(options.paths(), address);
    if (!function.driver().contains("vfio")) {
      throw Refusals.wrongDriver(function);
    }
    // Before anything is taken, for it may be refused.
    NumaHome home = NumaHome.ofPci(options.paths(), address, options.numa());
    FunctionLock lock = FunctionLock.take(options.paths(), address);
    try {
      Access access = access(function, options);
      try {
        VfioFunction opened = new VfioFunction(address, home, lock, access);
        opened.report(options);
        return opened;
      } catch (RuntimeException e) {
        access.close();
        throw e instanceof PosixException p ? Refusals.request(address, "setting up", p) : e;
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, lock::close);
      throw e;
    }
  }

  private static Access access(PciSysfs function, VfioOptions options) {
    boolean onlyNodes =
        function.vfioDevice().isPresent()
            && !Files.exists(GroupAccess.containerNode(options.paths()));
    boolean iommufd =
        switch (options.iommufd()) {
          case TRUE -> true;
          case FALSE -> false;
          case AUTO -> onlyNodes && !options.noIommu();
        };
    return iommufd ? IommufdAccess.open(function, options) : GroupAccess.open(function, options);
  }

  /**
   * The kernel wants the device back. From now on it looks unplugged, so that whoever uses it fails
   * and closes it, which is what the kernel waits for.
   */
  private void removed() {
    LOG.log(System.Logger.Level.WARNING, "{0} is being removed", name());
    for (MappedBar bar : bars) {
      if (bar != null) {
        bar.silence();
      }
    }
    noMoreDma();
  }

  private void noMoreDma() {
    int command = config.read(ConfigSpace.COMMAND, 2);
    config.write(ConfigSpace.COMMAND, 2, command & ~ConfigSpace.COMMAND_BUS_MASTER);
  }

  private void report(VfioOptions options) {
    if (options.noIommu()) {
      LOG.log(
          System.Logger.Level.WARNING,
          "{0} runs without an IOMMU: it can reach all memory of this machine",
          name());
    } else {
      LOG.log(System.Logger.Level.DEBUG, "{0}: {1}", name(), how());
    }
  }

  /** {@code vfio:0000:01:00.0}. */
  @Override
  public String name() {
    return "vfio:" + address;
  }

  /** Which of the kernel's ways led to it, in words. */
  public String how() {
    return access.domain().how();
  }

  @Override
  public Bar bar(int index) {
    Bar bar = index < 0 || index >= BARS ? null : bars[index];
    if (bar == null) {
      throw new InvalidRequestException(name() + " has no BAR " + index);
    }
    return bar;
  }

  @Override
  public ConfigSpace config() {
    return config;
  }

  @Override
  public NumaHome home() {
    return home;
  }

  /** The width of the IOMMU's bus addresses. */
  @Override
  public int addressBits() {
    return access.domain().addressBits();
  }

  /** Out of huge pages where the system has some. */
  @Override
  public HostMemory allocate(long bytes) {
    return hugePages.allocate(bytes);
  }

  @Override
  public BusRange map(MemorySegment memory) {
    if (closed) {
      throw new DmaMappingException(name() + " is closed; nothing can be mapped any more");
    }
    return access.domain().map(memory);
  }

  @Override
  public BusRange mapPeer(List<PeerMemory> parts) {
    if (closed) {
      throw new DmaMappingException(name() + " is closed; nothing can be mapped any more");
    }
    return access.domain().mapPeer(parts);
  }

  /**
   * Function level reset, or what the kernel has instead. Memory space and bus mastering are
   * afterwards as they were before.
   *
   * @throws InvalidRequestException if the kernel knows no way to reset this function alone
   * @throws DeviceGoneException if there is no device any more
   */
  @Override
  public void reset() {
    if (closed) {
      return;
    }
    if (!device.canReset()) {
      throw new InvalidRequestException(
          name() + " cannot be reset alone: it has no function level reset");
    }
    try {
      device.reset();
    } catch (PosixException e) {
      String message = "reset of " + name() + " failed: " + e.getMessage();
      RuntimeException typed =
          DeviceFile.isGone(e)
              ? new DeviceGoneException(message)
              : new ControllerFatalException(message);
      typed.initCause(e);
      throw typed;
    }
  }

  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    // First of all no DMA: what is unmapped next may be somebody else's memory soon.
    try (lock;
        access;
        removal) {
      noMoreDma();
      closeBars();
    }
  }

  private void closeBars() {
    for (MappedBar bar : bars) {
      if (bar != null) {
        bar.close();
      }
    }
  }
}
