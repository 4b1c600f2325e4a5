package io.gpunvme.nvme.pci.vfio;

/**
 * Numbers and layouts of {@code <linux/iommufd.h>} (Linux 6.2) and of what {@code <linux/vfio.h>}
 * has for it since Linux 6.6; as in {@link VfioAbi}.
 */
final class IommufdAbi {
  private static final int BASE = ';' << 8 | 0x80;

  static final int IOAS_ALLOC = BASE + 1;
  static final int IOAS_IOVA_RANGES = BASE + 4;
  static final int IOAS_MAP = BASE + 5;
  static final int IOAS_UNMAP = BASE + 6;

  static final int DEVICE_BIND_IOMMUFD = (';' << 8 | 100) + 18;
  static final int DEVICE_ATTACH_IOMMUFD_PT = (';' << 8 | 100) + 19;

  private IommufdAbi() {}

  /** {@code vfio_device_bind_iommufd}. */
  static final class Bind {
    static final long SIZE = 16;
    static final long ARGSZ = 0;
    static final long FLAGS = 4;
    static final long IOMMUFD = 8;
    static final long OUT_DEVID = 12;

    private Bind() {}
  }

  /** {@code vfio_device_attach_iommufd_pt}, as far as every kernel has it. */
  static final class Attach {
    static final long SIZE = 12;
    static final long ARGSZ = 0;
    static final long FLAGS = 4;
    static final long PT_ID = 8;

    private Attach() {}
  }

  /** {@code iommu_ioas_alloc}. */
  static final class IoasAlloc {
    static final long SIZE = 12;
    static final long OWN_SIZE = 0;
    static final long FLAGS = 4;
    static final long OUT_IOAS_ID = 8;

    private IoasAlloc() {}
  }

  /** {@code iommu_iova_range}; the last address is part of it. */
  static final class IovaRange {
    static final long SIZE = 16;
    static final long START = 0;
    static final long LAST = 8;

    private IovaRange() {}
  }

  /** {@code iommu_ioas_iova_ranges}. */
  static final class IovaRanges {
    static final long SIZE = 32;
    static final long OWN_SIZE = 0;
    static final long IOAS_ID = 4;
    static final long NUM_IOVAS = 8;
    static final long ALLOWED_IOVAS = 16;
    static final long OUT_IOVA_ALIGNMENT = 24;

    private IovaRanges() {}
  }

  /** {@code iommu_ioas_map}. */
  static final class IoasMap {
    static final int FIXED_IOVA = 1;
    static final int WRITEABLE = 1 << 1;
    static final int READABLE = 1 << 2;
    static final long SIZE = 40;
    static final long OWN_SIZE = 0;
    static final long FLAGS = 4;
    static final long IOAS_ID = 8;
    static final long USER_VA = 16;
    static final long LENGTH = 24;
    static final long IOVA = 32;

    private IoasMap() {}
  }

  /** {@code iommu_ioas_unmap}. */
  static final class IoasUnmap {
    static final long SIZE = 24;
    static final long OWN_SIZE = 0;
    static final long IOAS_ID = 4;
    static final long IOVA = 8;
    static final long LENGTH = 16;

    private IoasUnmap() {}
  }
}
