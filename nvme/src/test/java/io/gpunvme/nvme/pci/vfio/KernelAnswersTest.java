package io.gpunvme.nvme.pci.vfio;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;
import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.ffi.Posix;
import io.gpunvme.nvme.pci.host.IovaSpace;
import io.gpunvme.nvme.pci.vfio.VfioAbi.IommuInfo;
import io.gpunvme.nvme.pci.vfio.VfioAbi.RegionInfo;
import io.gpunvme.nvme.pci.vfio.VfioDevice.Area;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.Test;

/** How structures that the kernel fills in are read, whole and broken ones. */
class KernelAnswersTest {
  private static final long PAGE = 4096;

  private static MemorySegment region(int flags, long size) {
    MemorySegment region = Arena.ofAuto().allocate(256, 8);
    region.set(JAVA_INT_UNALIGNED, RegionInfo.FLAGS, flags);
    region.set(JAVA_LONG_UNALIGNED, RegionInfo.REGION_SIZE, size);
    return region;
  }

  private static void cap(MemorySegment in, long at, int id, long next) {
    in.set(JAVA_SHORT_UNALIGNED, at, (short) id);
    in.set(JAVA_SHORT_UNALIGNED, at + 2, (short) 1);
    in.set(JAVA_INT_UNALIGNED, at + 4, (int) next);
  }

  private static MemorySegment sparse(long... areas) {
    MemorySegment region =
        region(RegionInfo.READ | RegionInfo.WRITE | RegionInfo.MMAP | RegionInfo.CAPS, 0x10000);
    region.set(JAVA_INT_UNALIGNED, RegionInfo.CAP_OFFSET, 32);
    cap(region, 32, 3, 48);
    cap(region, 48, 1, 0);
    region.set(JAVA_INT_UNALIGNED, 48 + 8, areas.length / 2);
    for (int i = 0; i < areas.length; i++) {
      region.set(JAVA_LONG_UNALIGNED, 64 + 8L * i, areas[i]);
    }
    return region;
  }

  @Test
  void aWholeRegionIsMapped() {
    assertThat(VfioDevice.mappable(region(RegionInfo.MMAP, 0x4000), PAGE))
        .containsExactly(new Area(0, 0x4000));
    assertThat(VfioDevice.mappable(region(RegionInfo.READ, 0x4000), PAGE)).isEmpty();
    assertThat(VfioDevice.mappable(region(RegionInfo.MMAP, 256), PAGE)).isEmpty();
  }

  @Test
  void thePageOfTheInterruptTableIsLeftOut() {
    assertThat(VfioDevice.mappable(sparse(0, 0x2000, 0x3000, 0xD000), PAGE))
        .containsExactly(new Area(0, 0x2000), new Area(0x3000, 0xD000));
    assertThat(VfioDevice.mappable(sparse(), PAGE)).isEmpty();
  }

  @Test
  void areasThatMakeNoSenseAreNotMapped() {
    assertThat(VfioDevice.mappable(sparse(0x100, 0x2000, 0xF000, 0x2000, -PAGE, PAGE, 0, 0), PAGE))
        .isEmpty();
  }

  @Test
  void aChainThatNeverEndsDoes() {
    MemorySegment region = region(RegionInfo.MMAP | RegionInfo.CAPS, 0x4000);
    region.set(JAVA_INT_UNALIGNED, RegionInfo.CAP_OFFSET, 40);
    cap(region, 40, 9, 56);
    cap(region, 56, 9, 40);
    assertThat(CapChain.find(region, 40, 1)).isNull();
    assertThat(CapChain.find(region, 0, 9)).isNull();
    assertThat(CapChain.find(region, 252, 9)).isNull();
    assertThat(CapChain.find(region, 40, 9)).isNotNull();
  }

  @Test
  void moreEntriesThanFitAreNotRead() {
    MemorySegment region = sparse(0, 0x1000);
    region.set(JAVA_INT_UNALIGNED, 48 + 8, -1);
    // The rest of the structure is zeros, which are no areas.
    assertThat(VfioDevice.mappable(region, PAGE)).containsExactly(new Area(0, 0x1000));
  }

  @Test
  void anIommuSaysWhatItTranslates() {
    MemorySegment info = Arena.ofAuto().allocate(128, 8);
    info.set(JAVA_INT_UNALIGNED, IommuInfo.FLAGS, IommuInfo.PGSIZES | IommuInfo.CAPS);
    info.set(JAVA_LONG_UNALIGNED, IommuInfo.IOVA_PGSIZES, 0x4020_1000L);
    info.set(JAVA_INT_UNALIGNED, IommuInfo.CAP_OFFSET, 24);
    cap(info, 24, 1, 0);
    info.set(JAVA_INT_UNALIGNED, 24 + 8, 2);
    long[] ranges = {0, 0xFEDF_FFFFL, 0xFEF0_0000L, (1L << 39) - 1};
    for (int i = 0; i < ranges.length; i++) {
      info.set(JAVA_LONG_UNALIGNED, 40 + 8L * i, ranges[i]);
    }

    assertThat(Type1Table.ranges(info))
        .containsExactly(
            new IovaSpace.Range(0, 0xFEDF_FFFFL),
            new IovaSpace.Range(0xFEF0_0000L, (1L << 39) - 1));
    assertThat(Type1Table.page(info)).isEqualTo(Posix.pageSize());
    info.set(JAVA_LONG_UNALIGNED, IommuInfo.IOVA_PGSIZES, 1L << 21);
    assertThat(Type1Table.page(info)).isEqualTo(1L << 21);
  }

  @Test
  void anOldKernelDoesNotSay() {
    MemorySegment info = Arena.ofAuto().allocate(IommuInfo.SIZE, 8);
    List<IovaSpace.Range> ranges = Type1Table.ranges(info);

    assertThat(ranges).hasSize(2);
    assertThat(new IovaSpace(ranges, PAGE).addressBits()).isEqualTo(39);
    assertThat(Type1Table.page(info)).isEqualTo(Posix.pageSize());
  }

  @Test
  void iommufdListsRanges() {
    MemorySegment list = Arena.ofAuto().allocate(32, 8);
    list.set(JAVA_LONG_UNALIGNED, 8, 0xFFFFL);
    list.set(JAVA_LONG_UNALIGNED, 16, 1L << 32);
    list.set(JAVA_LONG_UNALIGNED, 24, -1L);

    assertThat(IommufdTable.ranges(list, 7))
        .containsExactly(new IovaSpace.Range(0, 0xFFFF), new IovaSpace.Range(1L << 32, -1L));
  }
}
