package io.gpunvme.nvme.pci.kmod;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.HostMemory;
import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.pci.host.DeviceFile;
import io.gpunvme.nvme.pci.host.FunctionLock;
import io.gpunvme.nvme.pci.host.HugePages;
import io.gpunvme.nvme.pci.host.MappedBar;
import io.gpunvme.nvme.pci.host.PciSysfs;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A PCI function that the kernel module gpunvme has, given to this process.
 *
 * <p>Bus addresses are whatever the kernel makes of memory for this device: one run behind an
 * IOMMU, physical addresses without, which needs consent. Memory of other devices is reached where
 * they share it as a dma-buf. When the process ends, however that happens, the module stops the
 * controller before it lets the memory go. When the device is taken away, registers read all ones.
 * Interrupts are not used. Safe for all threads.
 */
public final class KmodFunction implements PciFunction {
  /** The name of the module and of its PCI driver. */
  public static final String DRIVER = "gpunvme";

  private static final System.Logger LOG = System.getLogger("io.gpunvme.nvme.pci.kmod");

  private final PciAddress address;
  private final FunctionLock lock;
  private final DeviceFile file;
  private final KmodCalls calls;
  private final KmodInfo info;
  private final KmodConfigSpace config;
  private final MappedBar bar;
  private final KmodRanges ranges;
  private final NumaHome home;
  private final HugePages hugePages;
  private volatile boolean closed;

  /** Whether its DMA was to be stopped, and could not be. */
  private volatile boolean running;

  private KmodFunction(
      PciSysfs function,
      KmodOptions options,
      NumaHome home,
      FunctionLock lock,
      DeviceFile file,
      KmodCalls calls)
      throws IOException {
    this.address = function.address();
    this.home = home;
    this.hugePages = new HugePages(home);
    this.lock = lock;
    this.file = file;
    this.calls = calls;
    this.info = KmodInfo.ask(calls, name());
    if (!info.address().equals(address)) {
      throw KmodRefusals.stale(node(options.paths(), address), info.address());
    }
    if (info.isolated() == options.noIommu()) {
      throw KmodRefusals.consent(address, info);
    }
    this.ranges = new KmodRanges(calls, options.paths(), name(), info.addressBits());
    this.config = KmodConfigSpace.open(function.folder(), this::resetToStop);
    try {
      this.bar = mapBar();
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, config::close);
      throw e;
    }
  }

  /**
   * Opens a function.
   *
   * @throws InvalidRequestException if it cannot be opened; the message says why and what helps
   */
  public static KmodFunction open(PciAddress address, KmodOptions options) {
    return open(address, options, file -> file::ioctl);
  }

  /** Who makes the requests to an open file. */
  @FunctionalInterface
  interface Connection {
    /** The requests to this file. */
    KmodCalls to(DeviceFile file);
  }

  static KmodFunction open(PciAddress address, KmodOptions options, Connection connection) {
    HostPaths paths = options.paths();
    PciSysfs function = PciSysfs.ofSsd(paths, address);
    if (!function.driver().equals(DRIVER)) {
      throw KmodRefusals.wrongDriver(function, paths);
    }
    // Before anything is taken, for it may be refused.
    NumaHome home = NumaHome.ofPci(paths, address, options.numa());
    FunctionLock lock = FunctionLock.take(paths, address);
    try {
      DeviceFile file = openNode(address, node(paths, address));
      try {
        KmodFunction opened =
            new KmodFunction(function, options, home, lock, file, connection.to(file));
        opened.report();
        return opened;
      } catch (IOException | RuntimeException e) {
        file.close();
        throw typed(address, e);
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, lock::close);
      throw e;
    }
  }

  private static RuntimeException typed(PciAddress address, Exception e) {
    return switch (e) {
      case PosixException p -> KmodRefusals.request(address, p);
      case RuntimeException r -> r;
      default -> KmodRefusals.caused(address + ": " + e, e);
    };
  }

  /** The module's file of a function. */
  public static Path node(HostPaths paths, PciAddress address) {
    return paths.dev().resolve(DRIVER).resolve(address.toString());
  }

  private static DeviceFile openNode(PciAddress address, Path path) {
    try {
      return DeviceFile.open(path);
    } catch (PosixException e) {
      throw KmodRefusals.node(address, path, e);
    }
  }

  private MappedBar mapBar() {
    long page = Posix.pageSize();
    long bytes = Math.ceilDiv(info.barBytes(), page) * page;
    List<MappedBar.Part> parts = List.of(new MappedBar.Part(0, file.map(0, bytes)));
    return new MappedBar("BAR 0 of " + name(), info.barBytes(), parts, null, 0);
  }

  private void report() {
    if (info.isolated()) {
      LOG.log(System.Logger.Level.DEBUG, "{0}: {1}", name(), how());
    } else {
      LOG.log(
          System.Logger.Level.WARNING,
          "{0} runs without an IOMMU that isolates it: it can reach all memory of this machine",
          name());
    }
  }

  /** {@code kmod:0000:01:00.0}. */
  @Override
  public String name() {
    return "kmod:" + address;
  }

  /** What bus addresses are, in words. */
  public String how() {
    return info.translated()
        ? "bus addresses of %d bits, translated by an IOMMU".formatted(info.addressBits())
        : "physical addresses of %d bits".formatted(info.addressBits());
  }

  /** Whether an IOMMU translates: every range is then one run of bus addresses, as a rule. */
  public boolean translated() {
    return info.translated();
  }

  @Override
  public Bar bar(int index) {
    if (index != 0) {
      throw new InvalidRequestException(
          name() + " has no BAR " + index + ": the module gives BAR 0 only");
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

  /** What the kernel lets this device have. */
  @Override
  public int addressBits() {
    return info.addressBits();
  }

  /** Out of huge pages where the system has some: without an IOMMU long queues need them. */
  @Override
  public HostMemory allocate(long bytes) {
    return hugePages.allocate(bytes);
  }

  /**
   * Pins the pages; they count as locked memory (RLIMIT_MEMLOCK).
   *
   * @throws DeviceGoneException if there is no device any more
   */
  @Override
  public BusRange map(MemorySegment memory) {
    return ranges.pin(memory);
  }

  /**
   * Imports the memory's dma-buf.
   *
   * @throws DeviceGoneException if there is no device any more
   */
  @Override
  public BusRange map(RemoteMemory memory) {
    return ranges.importing(memory);
  }

  /**
   * Resets the function. Memory space, bus mastering and what is mapped are afterwards as they were
   * before.
   *
   * @throws InvalidRequestException if the kernel knows no way to reset this function alone
   * @throws DeviceGoneException if there is no device any more
   * @throws ControllerFatalException if it failed, or somebody else is resetting it
   */
  @Override
  public void reset() {
    if (closed) {
      return;
    }
    if (!info.resettable()) {
      throw new InvalidRequestException(
          name() + " cannot be reset alone: it has no function level reset");
    }
    try {
      calls.ioctl(KmodAbi.RESET, MemorySegment.NULL);
    } catch (PosixException e) {
      String message = "reset of " + name() + " failed: " + e.getMessage();
      RuntimeException typed =
          DeviceFile.isGone(e)
              ? new DeviceGoneException(message)
              : new ControllerFatalException(
                  e.errno() == Errno.EAGAIN
                      ? message + "; something else resets it at this moment"
                      : message);
      typed.initCause(e);
      throw typed;
    }
  }

  /** Where the Command register is out of reach: a function that was reset does no DMA either. */
  private void resetToStop() {
    try {
      reset();
      running = false;
    } catch (DeviceGoneException e) {
      running = false;
    } catch (NvmeException | InvalidRequestException e) {
      running = true;
      LOG.log(
          System.Logger.Level.WARNING,
          "the DMA of {0} cannot be stopped before it is closed: {1}",
          name(),
          e.getMessage());
    }
  }

  /** The module stops it at the latest when it is closed. */
  @Override
  public boolean stopDma() {
    PciFunction.super.stopDma();
    return inDoubt() == null;
  }

  @Override
  public @Nullable String inDoubt() {
    return running && !closed
        ? name() + " may still write to memory that it was given, until it is closed"
        : null;
  }

  /** The module stops the controller, and only then unpins what it had pinned. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    // The file is released by the last of its users, and a mapping is one.
    try (lock;
        file;
        ranges;
        config) {
      bar.close();
    }
  }
}
