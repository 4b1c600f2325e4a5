package io.gpunvme.nvme.pci.vfio;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.pci.host.DeviceFile;
import io.gpunvme.nvme.pci.host.PciSysfs;
import io.gpunvme.nvme.pci.vfio.VfioAbi.GroupStatus;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;

/** The way to a device by its IOMMU group and a container. */
final class GroupAccess {
  /** What the kernel calls a group that it made up for a device without an IOMMU. */
  private static final String NO_IOMMU = "vfio-noiommu";

  private final PciSysfs function;
  private final PciAddress address;
  private final HostPaths paths;
  private final String group;
  private final boolean noIommu;
  private final Opened opened = new Opened();

  private GroupAccess(PciSysfs function, VfioOptions options) {
    this.function = function;
    this.address = function.address();
    this.paths = options.paths();
    this.group = function.group();
    if (group.isEmpty()) {
      throw options.noIommu() ? noGroupAtAll() : Refusals.noGroup(address);
    }
    this.noIommu = function.groupName().equals(NO_IOMMU);
    if (noIommu && !options.noIommu()) {
      throw Refusals.noIommuNeedsConsent(address);
    }
    if (!noIommu && options.noIommu()) {
      throw Refusals.noIommuUnneeded(address, group);
    }
  }

  private InvalidRequestException noGroupAtAll() {
    return Refusals.noIommuOff(
        address, paths.sys().resolve("module/vfio/parameters/enable_unsafe_noiommu_mode"));
  }

  static Path containerNode(HostPaths paths) {
    return paths.dev().resolve("vfio/vfio");
  }

  /** Opens a function that vfio-pci has. */
  static Access open(PciSysfs function, VfioOptions options) {
    GroupAccess access = new GroupAccess(function, options);
    return CloseAll.orClose(access::open, access.opened::close);
  }

  private Access open() {
    DeviceFile container = node(containerNode(paths));
    int extension = extension(container);
    DeviceFile groupFile =
        node(paths.dev().resolve("vfio").resolve(noIommu ? "noiommu-" + group : group));
    requireViable(groupFile);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment number = arena.allocate(JAVA_INT);
      number.set(JAVA_INT, 0, container.fd());
      request(
          "putting group " + group + " into a container",
          () -> groupFile.ioctl(VfioAbi.GROUP_SET_CONTAINER, number));
      setIommu(container, extension);
      MemorySegment name = arena.allocateFrom(address.toString());
      int fd =
          request(
              "getting the device from group " + group,
              () -> groupFile.ioctl(VfioAbi.GROUP_GET_DEVICE_FD, name));
      DeviceFile device = opened.add(new DeviceFile("vfio device " + address, fd));
      return new Access(device, domain(container, extension), opened);
    }
  }

  private void setIommu(DeviceFile container, int extension) {
    try {
      container.ioctl(VfioAbi.SET_IOMMU, extension);
    } catch (PosixException e) {
      if (e.errno() == Errno.EPERM && !noIommu) {
        throw Refusals.noInterruptRemapping(address, e);
      }
      throw Refusals.request(address, "setting the IOMMU of the container", e);
    }
  }

  private IommuDomain domain(DeviceFile container, int extension) {
    if (noIommu) {
      return new PhysicalDomain(paths);
    }
    String how =
        "IOMMU group %s (%s), container type 1%s"
            .formatted(
                group,
                function.groupType().isEmpty() ? "VFIO" : function.groupType(),
                extension == VfioAbi.TYPE1V2_IOMMU ? "v2" : "");
    return new TranslatedDomain(paths, new Type1Table(container, how));
  }

  private DeviceFile node(Path path) {
    try {
      return opened.add(DeviceFile.open(path));
    } catch (PosixException e) {
      throw Refusals.node(address, path, e);
    }
  }

  /** The best kind of IOMMU that the kernel offers. */
  private int extension(DeviceFile container) {
    int version =
        request("asking for VFIO's version", () -> container.ioctl(VfioAbi.GET_API_VERSION, 0));
    if (version != VfioAbi.API_VERSION) {
      throw new InvalidRequestException(
          address + ": the kernel's VFIO has version " + version + ", this program knows 0");
    }
    int[] wanted =
        noIommu
            ? new int[] {VfioAbi.NOIOMMU_IOMMU}
            : new int[] {VfioAbi.TYPE1V2_IOMMU, VfioAbi.TYPE1_IOMMU};
    for (int extension : wanted) {
      if (request(
              "asking for an extension", () -> container.ioctl(VfioAbi.CHECK_EXTENSION, extension))
          > 0) {
        return extension;
      }
    }
    throw new InvalidRequestException(
        address
            + ": the kernel's VFIO has no driver for this IOMMU; `modprobe "
            + (noIommu ? "vfio enable_unsafe_noiommu_mode=1`" : "vfio_iommu_type1`"));
  }

  private void requireViable(DeviceFile groupFile) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment status = arena.allocate(GroupStatus.SIZE, Integer.BYTES);
      status.set(JAVA_INT, GroupStatus.ARGSZ, (int) GroupStatus.SIZE);
      request(
          "asking for the state of group " + group,
          () -> groupFile.ioctl(VfioAbi.GROUP_GET_STATUS, status));
      if ((status.get(JAVA_INT, GroupStatus.FLAGS) & GroupStatus.VIABLE) == 0) {
        throw Refusals.notViable(address, group, function.groupNeighbours());
      }
    }
  }

  /** A request to the kernel. */
  private interface Request {
    int run();
  }

  private int request(String what, Request request) {
    try {
      return request.run();
    } catch (PosixException e) {
      throw Refusals.request(address, what, e);
    }
  }
}
