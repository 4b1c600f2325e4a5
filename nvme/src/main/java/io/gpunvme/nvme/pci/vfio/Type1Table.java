package io.gpunvme.nvme.pci.vfio;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import io.gpunvme.ffi.Posix;
import io.gpunvme.nvme.pci.host.DeviceFile;
import io.gpunvme.nvme.pci.host.IovaSpace;
import io.gpunvme.nvme.pci.vfio.VfioAbi.DmaMap;
import io.gpunvme.nvme.pci.vfio.VfioAbi.DmaUnmap;
import io.gpunvme.nvme.pci.vfio.VfioAbi.IommuInfo;
import io.gpunvme.nvme.pci.vfio.VfioAbi.IovaRange;
import io.gpunvme.nvme.pci.vfio.VfioAbi.IovaRangeCap;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The table of a VFIO container with a type 1 IOMMU. */
final class Type1Table implements DmaTable {
  /** Enough for a kernel's capabilities; what it really needs is in the answer. */
  private static final long FIRST_GUESS = 4096;

  private static final long MOST_INFO = 1L << 20;

  // Linux before 5.4 does not say which addresses it translates. 39 bits is the narrowest IOMMU of
  // today's machines; the hole is where x86 sends message signalled interrupts.
  private static final List<IovaSpace.Range> UNKNOWN_RANGES =
      List.of(
          new IovaSpace.Range(0, 0xFEDF_FFFFL), new IovaSpace.Range(0xFEF0_0000L, (1L << 39) - 1));

  private final DeviceFile container;
  private final String how;
  private final long page;
  private final List<IovaSpace.Range> ranges;

  /**
   * Asks a container whose IOMMU is set.
   *
   * @param container stays the caller's
   */
  Type1Table(DeviceFile container, String how) {
    this.container = container;
    this.how = how;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment info = info(container, arena);
      this.page = page(info);
      this.ranges = ranges(info);
    }
  }

  private static MemorySegment info(DeviceFile container, Arena arena) {
    long bytes = FIRST_GUESS;
    while (true) {
      MemorySegment info = arena.allocate(bytes, Long.BYTES);
      info.set(JAVA_INT_UNALIGNED, IommuInfo.ARGSZ, (int) bytes);
      container.ioctl(VfioAbi.IOMMU_GET_INFO, info);
      long wanted = Integer.toUnsignedLong(info.get(JAVA_INT_UNALIGNED, IommuInfo.ARGSZ));
      if (wanted <= bytes || wanted > MOST_INFO) {
        return info;
      }
      bytes = wanted;
    }
  }

  static long page(MemorySegment info) {
    long sizes =
        (info.get(JAVA_INT_UNALIGNED, IommuInfo.FLAGS) & IommuInfo.PGSIZES) == 0
            ? 0
            : info.get(JAVA_LONG_UNALIGNED, IommuInfo.IOVA_PGSIZES);
    // The kernel pins whole pages of the CPU, however small those of the IOMMU are.
    return Math.max(Posix.pageSize(), Long.lowestOneBit(sizes));
  }

  static List<IovaSpace.Range> ranges(MemorySegment info) {
    @Nullable MemorySegment cap = null;
    if ((info.get(JAVA_INT_UNALIGNED, IommuInfo.FLAGS) & IommuInfo.CAPS) != 0) {
      long first = Integer.toUnsignedLong(info.get(JAVA_INT_UNALIGNED, IommuInfo.CAP_OFFSET));
      cap = CapChain.find(info, first, IovaRangeCap.ID);
    }
    if (cap == null) {
      return UNKNOWN_RANGES;
    }
    List<IovaSpace.Range> ranges = new ArrayList<>();
    long count = CapChain.count(cap, IovaRangeCap.NR_IOVAS, IovaRangeCap.SIZE, IovaRange.SIZE);
    for (long i = 0; i < count; i++) {
      long at = IovaRangeCap.SIZE + i * IovaRange.SIZE;
      ranges.add(
          new IovaSpace.Range(
              cap.get(JAVA_LONG_UNALIGNED, at + IovaRange.START),
              cap.get(JAVA_LONG_UNALIGNED, at + IovaRange.END)));
    }
    return ranges;
  }

  @Override
  public String how() {
    return how;
  }

  @Override
  public List<IovaSpace.Range> ranges() {
    return ranges;
  }

  @Override
  public long page() {
    return page;
  }

  @Override
  public void map(long address, long iova, long bytes) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment map = arena.allocate(DmaMap.SIZE, Long.BYTES);
      map.set(JAVA_INT_UNALIGNED, DmaMap.ARGSZ, (int) DmaMap.SIZE);
      map.set(JAVA_INT_UNALIGNED, DmaMap.FLAGS, DmaMap.READ | DmaMap.WRITE);
      map.set(JAVA_LONG_UNALIGNED, DmaMap.VADDR, address);
      map.set(JAVA_LONG_UNALIGNED, DmaMap.IOVA, iova);
      map.set(JAVA_LONG_UNALIGNED, DmaMap.BYTES, bytes);
      container.ioctl(VfioAbi.IOMMU_MAP_DMA, map);
    }
  }

  @Override
  public void unmap(long iova, long bytes) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment unmap = arena.allocate(DmaUnmap.SIZE, Long.BYTES);
      unmap.set(JAVA_INT_UNALIGNED, DmaUnmap.ARGSZ, (int) DmaUnmap.SIZE);
      unmap.set(JAVA_LONG_UNALIGNED, DmaUnmap.IOVA, iova);
      unmap.set(JAVA_LONG_UNALIGNED, DmaUnmap.BYTES, bytes);
      container.ioctl(VfioAbi.IOMMU_UNMAP_DMA, unmap);
    }
  }

  /** The container is the caller's. */
  @Override
  public void close() {}
}
