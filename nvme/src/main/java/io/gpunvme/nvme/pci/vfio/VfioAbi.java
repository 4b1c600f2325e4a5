package io.gpunvme.nvme.pci.vfio;

/**
 * Numbers and layouts of {@code <linux/vfio.h>}: request numbers, and for each structure its size
 * and the offsets of its fields in bytes, under the kernel's names. A test compares them with the
 * header.
 */
final class VfioAbi {
  static final int API_VERSION = 0;
  static final int TYPE1_IOMMU = 1;
  static final int TYPE1V2_IOMMU = 3;
  static final int NOIOMMU_IOMMU = 8;

  private static final int BASE = ';' << 8 | 100;

  static final int GET_API_VERSION = BASE;
  static final int CHECK_EXTENSION = BASE + 1;
  static final int SET_IOMMU = BASE + 2;
  static final int GROUP_GET_STATUS = BASE + 3;
  static final int GROUP_SET_CONTAINER = BASE + 4;
  static final int GROUP_GET_DEVICE_FD = BASE + 6;
  static final int DEVICE_GET_INFO = BASE + 7;
  static final int DEVICE_GET_REGION_INFO = BASE + 8;
  static final int DEVICE_SET_IRQS = BASE + 10;
  static final int DEVICE_RESET = BASE + 11;
  static final int IOMMU_GET_INFO = BASE + 12;
  static final int IOMMU_MAP_DMA = BASE + 13;
  static final int IOMMU_UNMAP_DMA = BASE + 14;

  static final int CONFIG_REGION = 7;
  static final int REQUEST_IRQ = 4;

  private VfioAbi() {}

  /** {@code vfio_group_status}. */
  static final class GroupStatus {
    static final int VIABLE = 1;
    static final long SIZE = 8;
    static final long ARGSZ = 0;
    static final long FLAGS = 4;

    private GroupStatus() {}
  }

  /** {@code vfio_device_info}, as far as every kernel has it. */
  static final class DeviceInfo {
    static final int RESET = 1;
    static final int PCI = 1 << 1;
    static final long SIZE = 16;
    static final long ARGSZ = 0;
    static final long FLAGS = 4;
    static final long NUM_REGIONS = 8;
    static final long NUM_IRQS = 12;

    private DeviceInfo() {}
  }

  /** {@code vfio_region_info}. */
  static final class RegionInfo {
    static final int READ = 1;
    static final int WRITE = 1 << 1;
    static final int MMAP = 1 << 2;
    static final int CAPS = 1 << 3;
    static final long SIZE = 32;
    static final long ARGSZ = 0;
    static final long FLAGS = 4;
    static final long INDEX = 8;
    static final long CAP_OFFSET = 12;
    static final long REGION_SIZE = 16;
    static final long OFFSET = 24;

    private RegionInfo() {}
  }

  /** {@code vfio_info_cap_header}: the start of each capability in a chain. */
  static final class CapHeader {
    static final long SIZE = 8;
    static final long ID = 0;
    static final long VERSION = 2;
    static final long NEXT = 4;

    private CapHeader() {}
  }

  /** {@code vfio_region_info_cap_sparse_mmap}; its areas follow. */
  static final class SparseMmap {
    static final int ID = 1;
    static final long SIZE = 16;
    static final long NR_AREAS = 8;

    private SparseMmap() {}
  }

  /** {@code vfio_region_sparse_mmap_area}. */
  static final class SparseArea {
    static final long SIZE = 16;
    static final long OFFSET = 0;
    static final long AREA_SIZE = 8;

    private SparseArea() {}
  }

  /** {@code vfio_iommu_type1_info}; capabilities follow. */
  static final class IommuInfo {
    static final int PGSIZES = 1;
    static final int CAPS = 1 << 1;
    static final long SIZE = 24;
    static final long ARGSZ = 0;
    static final long FLAGS = 4;
    static final long IOVA_PGSIZES = 8;
    static final long CAP_OFFSET = 16;

    private IommuInfo() {}
  }

  /** {@code vfio_iommu_type1_info_cap_iova_range}; its ranges follow. */
  static final class IovaRangeCap {
    static final int ID = 1;
    static final long SIZE = 16;
    static final long NR_IOVAS = 8;

    private IovaRangeCap() {}
  }

  /** {@code vfio_iova_range}; the end is part of it. */
  static final class IovaRange {
    static final long SIZE = 16;
    static final long START = 0;
    static final long END = 8;

    private IovaRange() {}
  }

  /** {@code vfio_iommu_type1_dma_map}. */
  static final class DmaMap {
    static final int READ = 1;
    static final int WRITE = 1 << 1;
    static final long SIZE = 32;
    static final long ARGSZ = 0;
    static final long FLAGS = 4;
    static final long VADDR = 8;
    static final long IOVA = 16;
    static final long BYTES = 24;

    private DmaMap() {}
  }

  /** {@code vfio_iommu_type1_dma_unmap}. */
  static final class DmaUnmap {
    static final long SIZE = 24;
    static final long ARGSZ = 0;
    static final long FLAGS = 4;
    static final long IOVA = 8;
    static final long BYTES = 16;

    private DmaUnmap() {}
  }

  /** {@code vfio_irq_set} with one event descriptor for data. */
  static final class IrqSet {
    static final int DATA_EVENTFD = 1 << 2;
    static final int ACTION_TRIGGER = 1 << 5;
    static final long SIZE = 24;
    static final long ARGSZ = 0;
    static final long FLAGS = 4;
    static final long INDEX = 8;
    static final long START = 12;
    static final long COUNT = 16;
    static final long DATA = 20;

    private IrqSet() {}
  }
}
