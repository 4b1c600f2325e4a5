package io.gpunvme.nvme.pci.vfio;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.pci.host.DeviceFile;
import io.gpunvme.nvme.pci.host.IovaSpace;
import io.gpunvme.nvme.pci.vfio.IommufdAbi.IoasMap;
import io.gpunvme.nvme.pci.vfio.IommufdAbi.IoasUnmap;
import io.gpunvme.nvme.pci.vfio.IommufdAbi.IovaRange;
import io.gpunvme.nvme.pci.vfio.IommufdAbi.IovaRanges;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** An address space (IOAS) of iommufd that the device is attached to. */
final class IommufdTable implements DmaTable {
  private static final int FIRST_GUESS = 64;
  private static final int MOST_RANGES = 1 << 16;

  private final DeviceFile iommufd;
  private final int ioas;
  private final String how;
  private long page;
  private final List<IovaSpace.Range> ranges;

  /**
   * Asks an address space; its ranges are known only once the device is attached.
   *
   * @param iommufd stays the caller's
   */
  IommufdTable(DeviceFile iommufd, int ioas, String how) {
    this.iommufd = iommufd;
    this.ioas = ioas;
    this.how = how;
    this.page = Posix.pageSize();
    this.ranges = readRanges();
  }

  private List<IovaSpace.Range> readRanges() {
    int count = FIRST_GUESS;
    while (true) {
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment list = arena.allocate(count * IovaRange.SIZE, Long.BYTES);
        MemorySegment query = arena.allocate(IovaRanges.SIZE, Long.BYTES);
        query.set(JAVA_INT_UNALIGNED, IovaRanges.OWN_SIZE, (int) IovaRanges.SIZE);
        query.set(JAVA_INT_UNALIGNED, IovaRanges.IOAS_ID, ioas);
        query.set(JAVA_INT_UNALIGNED, IovaRanges.NUM_IOVAS, count);
        query.set(JAVA_LONG_UNALIGNED, IovaRanges.ALLOWED_IOVAS, list.address());
        try {
          iommufd.ioctl(IommufdAbi.IOAS_IOVA_RANGES, query);
        } catch (PosixException e) {
          int wanted = query.get(JAVA_INT_UNALIGNED, IovaRanges.NUM_IOVAS);
          if (e.errno() != Errno.EMSGSIZE || wanted <= count || wanted > MOST_RANGES) {
            throw e;
          }
          count = wanted;
          continue;
        }
        page = Math.max(page, query.get(JAVA_LONG_UNALIGNED, IovaRanges.OUT_IOVA_ALIGNMENT));
        return ranges(list, query.get(JAVA_INT_UNALIGNED, IovaRanges.NUM_IOVAS));
      }
    }
  }

  static List<IovaSpace.Range> ranges(MemorySegment list, int count) {
    List<IovaSpace.Range> found = new ArrayList<>();
    for (int i = 0; i < Math.min(count, list.byteSize() / IovaRange.SIZE); i++) {
      long at = i * IovaRange.SIZE;
      found.add(
          new IovaSpace.Range(
              list.get(JAVA_LONG_UNALIGNED, at + IovaRange.START),
              list.get(JAVA_LONG_UNALIGNED, at + IovaRange.LAST)));
    }
    return found;
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
      MemorySegment map = arena.allocate(IoasMap.SIZE, Long.BYTES);
      map.set(JAVA_INT_UNALIGNED, IoasMap.OWN_SIZE, (int) IoasMap.SIZE);
      map.set(
          JAVA_INT_UNALIGNED,
          IoasMap.FLAGS,
          IoasMap.FIXED_IOVA | IoasMap.WRITEABLE | IoasMap.READABLE);
      map.set(JAVA_INT_UNALIGNED, IoasMap.IOAS_ID, ioas);
      map.set(JAVA_LONG_UNALIGNED, IoasMap.USER_VA, address);
      map.set(JAVA_LONG_UNALIGNED, IoasMap.LENGTH, bytes);
      map.set(JAVA_LONG_UNALIGNED, IoasMap.IOVA, iova);
      iommufd.ioctl(IommufdAbi.IOAS_MAP, map);
    }
  }

  @Override
  public String peerProblem() {
    return "iommufd maps only memory that has pages, and a BAR has none; open the controller with"
        + " iommufd=false";
  }

  @Override
  public void unmap(long iova, long bytes) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment unmap = arena.allocate(IoasUnmap.SIZE, Long.BYTES);
      unmap.set(JAVA_INT_UNALIGNED, IoasUnmap.OWN_SIZE, (int) IoasUnmap.SIZE);
      unmap.set(JAVA_INT_UNALIGNED, IoasUnmap.IOAS_ID, ioas);
      unmap.set(JAVA_LONG_UNALIGNED, IoasUnmap.IOVA, iova);
      unmap.set(JAVA_LONG_UNALIGNED, IoasUnmap.LENGTH, bytes);
      iommufd.ioctl(IommufdAbi.IOAS_UNMAP, unmap);
    }
  }

  /** The files are the caller's; the address space ends with them. */
  @Override
  public void close() {}
}
