package io.gpunvme.nvme.pci.vfio;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.pci.host.DeviceFile;
import io.gpunvme.nvme.pci.host.PciSysfs;
import io.gpunvme.nvme.pci.vfio.IommufdAbi.Attach;
import io.gpunvme.nvme.pci.vfio.IommufdAbi.Bind;
import io.gpunvme.nvme.pci.vfio.IommufdAbi.IoasAlloc;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;

/** The way to a device by its own node and an address space of iommufd (Linux 6.6). */
final class IommufdAccess {
  private final PciAddress address;
  private final HostPaths paths;
  private final String node;
  private final Opened opened = new Opened();

  private IommufdAccess(PciSysfs function, VfioOptions options) {
    this.address = function.address();
    this.paths = options.paths();
    if (options.noIommu()) {
      throw new InvalidRequestException(
          address + ": noiommu=true needs the way by groups; leave iommufd=true out");
    }
    this.node =
        function
            .vfioDevice()
            .orElseThrow(
                () ->
                    new InvalidRequestException(
                        address
                            + " has no node of its own below "
                            + paths.dev().resolve("vfio/devices")
                            + ": that needs Linux 6.6 with CONFIG_VFIO_DEVICE_CDEV; leave"
                            + " iommufd=true out"));
  }

  /** Opens a function that vfio-pci has. */
  static Access open(PciSysfs function, VfioOptions options) {
    IommufdAccess access = new IommufdAccess(function, options);
    try {
      return access.open();
    } catch (PosixException e) {
      access.opened.close();
      throw Refusals.request(access.address, "opening through iommufd", e);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, access.opened::close);
      throw e;
    }
  }

  private Access open() {
    DeviceFile iommufd = node(paths.dev().resolve("iommu"));
    DeviceFile device = node(paths.dev().resolve("vfio/devices").resolve(node));
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment bind = arena.allocate(Bind.SIZE, Long.BYTES);
      bind.set(JAVA_INT_UNALIGNED, Bind.ARGSZ, (int) Bind.SIZE);
      bind.set(JAVA_INT_UNALIGNED, Bind.IOMMUFD, iommufd.fd());
      device.ioctl(IommufdAbi.DEVICE_BIND_IOMMUFD, bind);

      MemorySegment alloc = arena.allocate(IoasAlloc.SIZE, Long.BYTES);
      alloc.set(JAVA_INT_UNALIGNED, IoasAlloc.OWN_SIZE, (int) IoasAlloc.SIZE);
      iommufd.ioctl(IommufdAbi.IOAS_ALLOC, alloc);
      int ioas = alloc.get(JAVA_INT_UNALIGNED, IoasAlloc.OUT_IOAS_ID);

      MemorySegment attach = arena.allocate(Attach.SIZE, Long.BYTES);
      attach.set(JAVA_INT_UNALIGNED, Attach.ARGSZ, (int) Attach.SIZE);
      attach.set(JAVA_INT_UNALIGNED, Attach.PT_ID, ioas);
      device.ioctl(IommufdAbi.DEVICE_ATTACH_IOMMUFD_PT, attach);

      String how = "iommufd, " + node + ", address space " + ioas;
      IommuDomain domain = new TranslatedDomain(paths, new IommufdTable(iommufd, ioas, how));
      return new Access(device, domain, opened);
    }
  }

  private DeviceFile node(Path path) {
    try {
      return opened.add(DeviceFile.open(path));
    } catch (PosixException e) {
      throw Refusals.node(address, path, e);
    }
  }
}
