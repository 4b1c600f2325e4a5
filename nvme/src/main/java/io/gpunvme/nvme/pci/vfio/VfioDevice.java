package io.gpunvme.nvme.pci.vfio;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.pci.host.DeviceFile;
import io.gpunvme.nvme.pci.host.FileConfigSpace;
import io.gpunvme.nvme.pci.host.MappedBar;
import io.gpunvme.nvme.pci.vfio.VfioAbi.DeviceInfo;
import io.gpunvme.nvme.pci.vfio.VfioAbi.RegionInfo;
import io.gpunvme.nvme.pci.vfio.VfioAbi.SparseArea;
import io.gpunvme.nvme.pci.vfio.VfioAbi.SparseMmap;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What can be asked of a device's descriptor, whichever way it was got. */
final class VfioDevice {
  private static final long FIRST_GUESS = 1024;
  private static final long MOST_INFO = 1L << 20;

  /** A run of bytes within a region. */
  record Area(long offset, long size) {}

  private final DeviceFile file;
  private final String name;
  private final int flags;
  private final int regions;

  VfioDevice(DeviceFile file, String name) {
    this.file = file;
    this.name = name;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment info = arena.allocate(DeviceInfo.SIZE, Long.BYTES);
      info.set(JAVA_INT_UNALIGNED, DeviceInfo.ARGSZ, (int) DeviceInfo.SIZE);
      file.ioctl(VfioAbi.DEVICE_GET_INFO, info);
      flags = info.get(JAVA_INT_UNALIGNED, DeviceInfo.FLAGS);
      regions = info.get(JAVA_INT_UNALIGNED, DeviceInfo.NUM_REGIONS);
    }
    if ((flags & DeviceInfo.PCI) == 0 || regions <= VfioAbi.CONFIG_REGION) {
      throw new InvalidRequestException(
          "%s: the kernel does not offer it as a PCI function (flags %Xh, %d regions)"
              .formatted(name, flags, regions));
    }
  }

  DeviceFile file() {
    return file;
  }

  /** Whether the kernel knows a way to reset this function alone. */
  boolean canReset() {
    return (flags & DeviceInfo.RESET) != 0;
  }

  FileConfigSpace config() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment region = region(VfioAbi.CONFIG_REGION, arena);
      return new FileConfigSpace(
          file,
          region.get(JAVA_LONG_UNALIGNED, RegionInfo.OFFSET),
          Math.toIntExact(region.get(JAVA_LONG_UNALIGNED, RegionInfo.REGION_SIZE)));
    }
  }

  /** A memory BAR, mapped as far as the kernel allows; null if the function has no such BAR. */
  @Nullable MappedBar bar(int index) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment region = region(index, arena);
      long size = region.get(JAVA_LONG_UNALIGNED, RegionInfo.REGION_SIZE);
      long start = region.get(JAVA_LONG_UNALIGNED, RegionInfo.OFFSET);
      if (size == 0) {
        return null;
      }
      List<MappedBar.Part> parts = new ArrayList<>();
      try {
        for (Area area : mappable(region, Posix.pageSize())) {
          Mapping mapping = file.map(start + area.offset, area.size);
          parts.add(new MappedBar.Part(area.offset, mapping));
        }
      } catch (PosixException e) {
        parts.forEach(p -> p.mapping().close());
        throw e;
      }
      return new MappedBar("BAR " + index + " of " + name, size, parts, file, start);
    }
  }

  private MemorySegment region(int index, Arena arena) {
    long bytes = FIRST_GUESS;
    while (true) {
      MemorySegment region = arena.allocate(bytes, Long.BYTES);
      region.set(JAVA_INT_UNALIGNED, RegionInfo.ARGSZ, (int) bytes);
      region.set(JAVA_INT_UNALIGNED, RegionInfo.INDEX, index);
      file.ioctl(VfioAbi.DEVICE_GET_REGION_INFO, region);
      long wanted = Integer.toUnsignedLong(region.get(JAVA_INT_UNALIGNED, RegionInfo.ARGSZ));
      if (wanted <= bytes || wanted > MOST_INFO) {
        return region;
      }
      bytes = wanted;
    }
  }

  /**
   * What of a region can be mapped: all of it, or the areas that the kernel lists because the page
   * of an MSI-X table is not for user programs; only whole pages.
   */
  static List<Area> mappable(MemorySegment region, long page) {
    int flags = region.get(JAVA_INT_UNALIGNED, RegionInfo.FLAGS);
    long size = region.get(JAVA_LONG_UNALIGNED, RegionInfo.REGION_SIZE);
    List<Area> areas = new ArrayList<>();
    if ((flags & RegionInfo.MMAP) == 0) {
      return areas;
    }
    MemorySegment sparse = null;
    if ((flags & RegionInfo.CAPS) != 0) {
      long first = Integer.toUnsignedLong(region.get(JAVA_INT_UNALIGNED, RegionInfo.CAP_OFFSET));
      sparse = CapChain.find(region, first, SparseMmap.ID);
    }
    if (sparse == null) {
      addWhole(areas, 0, size, size, page);
      return areas;
    }
    long count = CapChain.count(sparse, SparseMmap.NR_AREAS, SparseMmap.SIZE, SparseArea.SIZE);
    for (long i = 0; i < count; i++) {
      long at = SparseMmap.SIZE + i * SparseArea.SIZE;
      long offset = sparse.get(JAVA_LONG_UNALIGNED, at + SparseArea.OFFSET);
      addWhole(
          areas, offset, sparse.get(JAVA_LONG_UNALIGNED, at + SparseArea.AREA_SIZE), size, page);
    }
    return areas;
  }

  private static void addWhole(List<Area> areas, long offset, long bytes, long size, long page) {
    long whole = bytes & -page;
    if (offset >= 0 && offset % page == 0 && whole > 0 && whole <= size - offset) {
      areas.add(new Area(offset, whole));
    }
  }

  /** Resets the function; its configuration space is restored by the kernel. */
  void reset() {
    file.ioctl(VfioAbi.DEVICE_RESET, 0);
  }
}
