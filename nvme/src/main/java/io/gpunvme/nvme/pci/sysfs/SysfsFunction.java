package io.gpunvme.nvme.pci.sysfs;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
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
import io.gpunvme.nvme.pci.host.PciResources;
import io.gpunvme.nvme.pci.host.PciSysfs;
import io.gpunvme.nvme.pci.host.PhysicalMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A PCI function that no kernel driver has, through its files in sysfs, with physical addresses.
 *
 * <p>Nothing stands between the device and the machine's memory. If this process is killed while
 * the controller runs, nobody stops the controller, and it may still write to pages that belong to
 * others by then; {@link PhysicalMemory} names a second danger. That is why it wants consent and
 * root, and is refused where an IOMMU or a kernel driver is in the way.
 *
 * <p>Interrupts are not used. Safe for all threads.
 */
public final class SysfsFunction implements PciFunction {
  private static final System.Logger LOG = System.getLogger("io.gpunvme.nvme.pci.sysfs");

  private final PciAddress address;
  private final Path folder;
  private final FunctionLock lock;
  private final DeviceFile configFile;
  private final FileConfigSpace config;
  private final @Nullable MappedBar[] bars;
  private final PhysicalMemory physical;
  private final NumaHome home;
  private final HugePages hugePages;
  private volatile boolean closed;

  private SysfsFunction(PciSysfs function, SysfsOptions options, NumaHome home, FunctionLock lock)
      throws IOException {
    this.address = function.address();
    this.home = home;
    this.hugePages = new HugePages(home);
    this.folder = function.folder();
    this.lock = lock;
    this.physical = new PhysicalMemory(options.paths());
    write("enable", "1");
    DeviceFile file = null;
    try {
      Path path = folder.resolve("config");
      file = DeviceFile.open(path);
      this.configFile = file;
      this.config = new FileConfigSpace(file, 0, Math.toIntExact(Files.size(path)));
      command(
          ConfigSpace.COMMAND_MEMORY | ConfigSpace.COMMAND_INTX_DISABLE,
          ConfigSpace.COMMAND_BUS_MASTER);
      this.bars = mapBars(PciResources.parse(Files.readString(folder.resolve("resource"))));
    } catch (IOException | RuntimeException e) {
      if (file != null) {
        file.close();
      }
      write("enable", "0");
      throw e;
    }
  }

  /**
   * Opens a function.
   *
   * @throws InvalidRequestException if it cannot be opened; the message says why and what helps
   */
  public static SysfsFunction open(PciAddress address, SysfsOptions options) {
    PciSysfs function = PciSysfs.ofSsd(options.paths(), address);
    SysfsChecks.require(function, options);
    // Before anything is taken, for it may be refused.
    NumaHome home = NumaHome.ofPci(options.paths(), address, options.numa());
    FunctionLock lock = FunctionLock.take(options.paths(), address);
    try {
      SysfsFunction opened = new SysfsFunction(function, options, home, lock);
      LOG.log(
          System.Logger.Level.WARNING,
          "{0} runs on physical addresses: it can reach all memory of this machine",
          opened.name());
      return opened;
    } catch (IOException | PosixException e) {
      lock.close();
      InvalidRequestException typed =
          new InvalidRequestException("opening sysfs:" + address + " failed: " + e.getMessage());
      typed.initCause(e);
      throw typed;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, lock::close);
      throw e;
    }
  }

  private @Nullable MappedBar[] mapBars(List<PciResources.Resource> resources) {
    @Nullable MappedBar[] mapped = new MappedBar[PciResources.BARS];
    try {
      for (int i = 0; i < mapped.length && i < resources.size(); i++) {
        PciResources.Resource resource = resources.get(i);
        if (resource.isMemory() && resource.size() > 0) {
          mapped[i] = mapBar(i, resource.size());
        }
      }
      return mapped;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> closeBars(mapped));
      throw e;
    }
  }

  private MappedBar mapBar(int index, long size) {
    Path path = folder.resolve("resource" + index);
    long page = Posix.pageSize();
    try (DeviceFile file = DeviceFile.open(path)) {
      Mapping mapping = file.map(0, Math.ceilDiv(size, page) * page);
      List<MappedBar.Part> parts = List.of(new MappedBar.Part(0, mapping));
      return new MappedBar("BAR " + index + " of " + name(), size, parts, null, 0);
    } catch (PosixException e) {
      if (e.errno() != Errno.EPERM) {
        throw e;
      }
      InvalidRequestException typed =
          new InvalidRequestException(
              "mapping "
                  + path
                  + " is forbidden (EPERM): the kernel is locked down, as it is with Secure Boot;"
                  + " use vfio:"
                  + address);
      typed.initCause(e);
      throw typed;
    }
  }

  /** {@code sysfs:0000:01:00.0}. */
  @Override
  public String name() {
    return "sysfs:" + address;
  }

  @Override
  public Bar bar(int index) {
    Bar bar = index < 0 || index >= bars.length ? null : bars[index];
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

  /** 64: physical addresses. */
  @Override
  public int addressBits() {
    return Long.SIZE;
  }

  /** Out of huge pages where the system has some: queues longer than a page need them. */
  @Override
  public HostMemory allocate(long bytes) {
    return hugePages.allocate(bytes);
  }

  @Override
  public BusRange map(MemorySegment memory) {
    if (closed) {
      throw new DmaMappingException(name() + " is closed; nothing can be mapped any more");
    }
    return physical.map(memory);
  }

  /** By physical addresses. */
  @Override
  public BusRange mapPeer(List<PeerMemory> parts) {
    if (closed) {
      throw new DmaMappingException(name() + " is closed; nothing can be mapped any more");
    }
    return PhysicalMemory.peer(parts);
  }

  /**
   * Resets the function the way the kernel prefers for it. Memory space and bus mastering are
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
    if (!Files.exists(folder)) {
      throw new DeviceGoneException("reset: " + folder + " is not there any more");
    }
    if (!Files.exists(folder.resolve("reset"))) {
      throw new InvalidRequestException(
          name() + " cannot be reset alone: it has no function level reset");
    }
    try {
      write("reset", "1");
    } catch (PosixException e) {
      ControllerFatalException typed =
          new ControllerFatalException("reset of " + name() + " failed: " + e.getMessage());
      typed.initCause(e);
      throw typed;
    }
  }

  private void command(int on, int off) {
    int old = config.read(ConfigSpace.COMMAND, 2);
    config.write(ConfigSpace.COMMAND, 2, old & ~off | on);
  }

  private void write(String attribute, String text) {
    String path = folder.resolve(attribute).toString();
    try (Arena arena = Arena.ofConfined();
        DeviceFile file = DeviceFile.open(Path.of(path), Posix.O_WRONLY)) {
      MemorySegment bytes = arena.allocateFrom(text);
      Posix.pwrite(file.fd(), bytes.asSlice(0, text.length()), 0);
    }
  }

  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    // No DMA any more: the memory may be somebody else's soon.
    try (lock;
        configFile;
        physical) {
      command(0, ConfigSpace.COMMAND_BUS_MASTER);
      closeBars(bars);
      write("enable", "0");
    } catch (PosixException e) {
      LOG.log(System.Logger.Level.WARNING, "giving back " + name(), e);
    }
  }

  private static void closeBars(@Nullable MappedBar[] all) {
    for (MappedBar bar : all) {
      if (bar != null) {
        bar.close();
      }
    }
  }
}
