package io.gpunvme.gpu.bar;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.memory.PeerMemory;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.pci.host.DeviceFile;
import io.gpunvme.nvme.pci.host.FileConfigSpace;
import io.gpunvme.nvme.pci.host.PciResources;
import io.gpunvme.nvme.pci.host.PciSysfs;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * A memory BAR of a PCI function that somebody else drives, mapped by its file in sysfs. Safe for
 * all threads; use of its memory after {@link #close} throws.
 *
 * <p>Source: Linux, {@code Documentation/PCI/sysfs-pci.rst}.
 */
public final class PeerBar implements AutoCloseable {
  private final PciAddress address;
  private final int index;
  private final long physical;
  private final Mapping mapping;

  PeerBar(PciAddress address, int index, long physical, Mapping mapping) {
    this.address = address;
    this.index = index;
    this.physical = physical;
    this.mapping = mapping;
  }

  /**
   * Maps a BAR whole, for reading and writing. Needs root.
   *
   * @param index 0..5
   * @throws InvalidRequestException if there is no such BAR, it is not memory, or it cannot be
   *     mapped; the message says why and what helps
   */
  public static PeerBar open(HostPaths paths, PciAddress address, int index) {
    PciSysfs function = PciSysfs.of(paths, address);
    String name = name(address, index);
    try {
      PciResources.Resource resource = resource(function, index);
      requireMemory(name, resource);
      requireEnabled(function, name);
      Path file = function.folder().resolve("resource" + index);
      return new PeerBar(address, index, resource.first(), map(file, name, resource.size()));
    } catch (IOException e) {
      throw refused(name + " cannot be read: " + e.getMessage(), e);
    }
  }

  private static PciResources.Resource resource(PciSysfs function, int index) throws IOException {
    Path file = function.folder().resolve("resource");
    List<PciResources.Resource> all = PciResources.parse(Files.readString(file));
    if (index < 0 || index >= all.size() || all.get(index).size() == 0) {
      throw new InvalidRequestException(
          "there is no " + name(function.address(), index) + "; " + file + " lists them");
    }
    return all.get(index);
  }

  private static void requireMemory(String name, PciResources.Resource resource) {
    // Reading registers may have effects, and the search reads everything.
    if (!resource.isPrefetchable()) {
      throw new InvalidRequestException(
          name + " is not prefetchable: it has registers, not memory. A GPU's memory is BAR 1");
    }
    if (resource.size() % PageCut.PAGE != 0 || resource.first() % PageCut.PAGE != 0) {
      throw new InvalidRequestException(
          "%s, %Xh bytes at %Xh, is not made of pages of 64 KiB"
              .formatted(name, resource.size(), resource.first()));
    }
  }

  private static void requireEnabled(PciSysfs function, String name) throws IOException {
    Path path = function.folder().resolve("config");
    try (DeviceFile file = DeviceFile.open(path, Posix.O_RDONLY)) {
      FileConfigSpace config = new FileConfigSpace(file, 0, Math.toIntExact(Files.size(path)));
      int command = config.read(ConfigSpace.COMMAND, 2);
      if (command == 0xFFFF || (command & ConfigSpace.COMMAND_MEMORY) == 0) {
        throw new InvalidRequestException(
            ("%s does not answer: memory space of the function is off (its command register is"
                    + " %Xh). Its driver switches it on; `echo 1 > %s` does without one")
                .formatted(name, command, function.folder().resolve("enable")));
      }
    } catch (PosixException e) {
      throw refused("the configuration space of " + name + ": " + e.getMessage(), e);
    }
  }

  private static Mapping map(Path path, String name, long size) {
    try (DeviceFile file = DeviceFile.open(path)) {
      return file.map(0, size);
    } catch (PosixException e) {
      throw refused("mapping " + path + " (" + name + ") failed: " + advice(e), e);
    }
  }

  private static String advice(PosixException e) {
    return switch (e.errno()) {
      case Errno.EACCES -> "it needs root (EACCES)";
      case Errno.EPERM -> "the kernel is locked down, as it is with Secure Boot (EPERM)";
      case Errno.EINVAL ->
          "only its driver may map it (EINVAL): this kernel was built with"
              + " CONFIG_IO_STRICT_DEVMEM; boot it with iomem=relaxed";
      default -> "the kernel says " + e.errnoName();
    };
  }

  private static InvalidRequestException refused(String message, Exception cause) {
    InvalidRequestException typed = new InvalidRequestException(message);
    typed.initCause(cause);
    return typed;
  }

  private static String name(PciAddress address, int index) {
    return "BAR " + index + " of " + address;
  }

  /** {@code BAR 1 of 0000:0a:00.0}. */
  public String name() {
    return name(address, index);
  }

  /** The function. */
  public PciAddress address() {
    return address;
  }

  /** Bytes: a multiple of 64 KiB. */
  public long size() {
    return mapping.segment().byteSize();
  }

  /** All of it. */
  public MemorySegment memory() {
    return mapping.segment();
  }

  /** Some of it, for a controller. */
  public PeerMemory part(long offset, long bytes) {
    return new PeerMemory(mapping.segment().asSlice(offset, bytes), physical + offset);
  }

  /** Unmaps; no controller has any of it any more. Idempotent. */
  @Override
  public void close() {
    mapping.close();
  }
}
