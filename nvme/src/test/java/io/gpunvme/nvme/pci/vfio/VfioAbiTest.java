package io.gpunvme.nvme.pci.vfio;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.testing.HeaderNumbers;
import io.gpunvme.testing.NativeCompiler;
import org.junit.jupiter.api.Test;

/** {@link VfioAbi} and {@link IommufdAbi} say the same as this machine's kernel headers. */
class VfioAbiTest {
  private final HeaderNumbers numbers =
      new HeaderNumbers(
          NativeCompiler.C, includeIfThere("linux/vfio.h") + includeIfThere("linux/iommufd.h"));

  private static String includeIfThere(String header) {
    return "#if __has_include(<%s>)\n#include <%s>\n#endif\n".formatted(header, header);
  }

  @Test
  void requestsAndFlagsAreTheHeaders() {
    numbers.value("VFIO_API_VERSION", VfioAbi.API_VERSION);
    numbers.value("VFIO_TYPE1_IOMMU", VfioAbi.TYPE1_IOMMU);
    numbers.value("VFIO_TYPE1v2_IOMMU", VfioAbi.TYPE1V2_IOMMU);
    numbers.value("VFIO_NOIOMMU_IOMMU", VfioAbi.NOIOMMU_IOMMU);
    numbers.value("VFIO_GET_API_VERSION", VfioAbi.GET_API_VERSION);
    numbers.value("VFIO_CHECK_EXTENSION", VfioAbi.CHECK_EXTENSION);
    numbers.value("VFIO_SET_IOMMU", VfioAbi.SET_IOMMU);
    numbers.value("VFIO_GROUP_GET_STATUS", VfioAbi.GROUP_GET_STATUS);
    numbers.value("VFIO_GROUP_SET_CONTAINER", VfioAbi.GROUP_SET_CONTAINER);
    numbers.value("VFIO_GROUP_GET_DEVICE_FD", VfioAbi.GROUP_GET_DEVICE_FD);
    numbers.value("VFIO_DEVICE_GET_INFO", VfioAbi.DEVICE_GET_INFO);
    numbers.value("VFIO_DEVICE_GET_REGION_INFO", VfioAbi.DEVICE_GET_REGION_INFO);
    numbers.value("VFIO_DEVICE_SET_IRQS", VfioAbi.DEVICE_SET_IRQS);
    numbers.value("VFIO_DEVICE_RESET", VfioAbi.DEVICE_RESET);
    numbers.value("VFIO_IOMMU_GET_INFO", VfioAbi.IOMMU_GET_INFO);
    numbers.value("VFIO_IOMMU_MAP_DMA", VfioAbi.IOMMU_MAP_DMA);
    numbers.value("VFIO_IOMMU_UNMAP_DMA", VfioAbi.IOMMU_UNMAP_DMA);
    numbers.value("VFIO_PCI_CONFIG_REGION_INDEX", VfioAbi.CONFIG_REGION);
    numbers.value("VFIO_PCI_REQ_IRQ_INDEX", VfioAbi.REQUEST_IRQ);
    numbers.value("VFIO_GROUP_FLAGS_VIABLE", VfioAbi.GroupStatus.VIABLE);
    numbers.value("VFIO_DEVICE_FLAGS_RESET", VfioAbi.DeviceInfo.RESET);
    numbers.value("VFIO_DEVICE_FLAGS_PCI", VfioAbi.DeviceInfo.PCI);
    numbers.value("VFIO_REGION_INFO_FLAG_READ", VfioAbi.RegionInfo.READ);
    numbers.value("VFIO_REGION_INFO_FLAG_WRITE", VfioAbi.RegionInfo.WRITE);
    numbers.value("VFIO_REGION_INFO_FLAG_MMAP", VfioAbi.RegionInfo.MMAP);
    numbers.value("VFIO_REGION_INFO_FLAG_CAPS", VfioAbi.RegionInfo.CAPS);
    numbers.value("VFIO_REGION_INFO_CAP_SPARSE_MMAP", VfioAbi.SparseMmap.ID);
    numbers.value("VFIO_IOMMU_INFO_PGSIZES", VfioAbi.IommuInfo.PGSIZES);
    numbers.value("VFIO_IOMMU_INFO_CAPS", VfioAbi.IommuInfo.CAPS);
    numbers.value("VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE", VfioAbi.IovaRangeCap.ID);
    numbers.value("VFIO_DMA_MAP_FLAG_READ", VfioAbi.DmaMap.READ);
    numbers.value("VFIO_DMA_MAP_FLAG_WRITE", VfioAbi.DmaMap.WRITE);
    numbers.value("VFIO_IRQ_SET_DATA_EVENTFD", VfioAbi.IrqSet.DATA_EVENTFD);
    numbers.value("VFIO_IRQ_SET_ACTION_TRIGGER", VfioAbi.IrqSet.ACTION_TRIGGER);
    compare("linux/vfio.h", "VFIO_API_VERSION");
  }

  @Test
  void groupAndDevice() {
    numbers.size("struct vfio_group_status", VfioAbi.GroupStatus.SIZE);
    numbers.field("struct vfio_group_status", "argsz", VfioAbi.GroupStatus.ARGSZ);
    numbers.field("struct vfio_group_status", "flags", VfioAbi.GroupStatus.FLAGS);
    numbers.field("struct vfio_device_info", "argsz", VfioAbi.DeviceInfo.ARGSZ);
    numbers.field("struct vfio_device_info", "flags", VfioAbi.DeviceInfo.FLAGS);
    numbers.field("struct vfio_device_info", "num_regions", VfioAbi.DeviceInfo.NUM_REGIONS);
    numbers.field("struct vfio_device_info", "num_irqs", VfioAbi.DeviceInfo.NUM_IRQS);
    // Later kernels append; what we ask for ends where that begins.
    numbers.field("struct vfio_device_info", "cap_offset", VfioAbi.DeviceInfo.SIZE);
    compare("linux/vfio.h", "VFIO_API_VERSION");
  }

  @Test
  void regions() {
    numbers.size("struct vfio_region_info", VfioAbi.RegionInfo.SIZE);
    numbers.field("struct vfio_region_info", "argsz", VfioAbi.RegionInfo.ARGSZ);
    numbers.field("struct vfio_region_info", "flags", VfioAbi.RegionInfo.FLAGS);
    numbers.field("struct vfio_region_info", "index", VfioAbi.RegionInfo.INDEX);
    numbers.field("struct vfio_region_info", "cap_offset", VfioAbi.RegionInfo.CAP_OFFSET);
    numbers.field("struct vfio_region_info", "size", VfioAbi.RegionInfo.REGION_SIZE);
    numbers.field("struct vfio_region_info", "offset", VfioAbi.RegionInfo.OFFSET);
    numbers.size("struct vfio_info_cap_header", VfioAbi.CapHeader.SIZE);
    numbers.field("struct vfio_info_cap_header", "id", VfioAbi.CapHeader.ID);
    numbers.field("struct vfio_info_cap_header", "version", VfioAbi.CapHeader.VERSION);
    numbers.field("struct vfio_info_cap_header", "next", VfioAbi.CapHeader.NEXT);
    numbers.field(
        "struct vfio_region_info_cap_sparse_mmap", "nr_areas", VfioAbi.SparseMmap.NR_AREAS);
    numbers.field("struct vfio_region_info_cap_sparse_mmap", "areas", VfioAbi.SparseMmap.SIZE);
    numbers.size("struct vfio_region_sparse_mmap_area", VfioAbi.SparseArea.SIZE);
    numbers.field("struct vfio_region_sparse_mmap_area", "offset", VfioAbi.SparseArea.OFFSET);
    numbers.field("struct vfio_region_sparse_mmap_area", "size", VfioAbi.SparseArea.AREA_SIZE);
    compare("linux/vfio.h", "VFIO_API_VERSION");
  }

  @Test
  void iommu() {
    numbers.size("struct vfio_iommu_type1_info", VfioAbi.IommuInfo.SIZE);
    numbers.field("struct vfio_iommu_type1_info", "argsz", VfioAbi.IommuInfo.ARGSZ);
    numbers.field("struct vfio_iommu_type1_info", "flags", VfioAbi.IommuInfo.FLAGS);
    numbers.field("struct vfio_iommu_type1_info", "iova_pgsizes", VfioAbi.IommuInfo.IOVA_PGSIZES);
    numbers.field("struct vfio_iommu_type1_info", "cap_offset", VfioAbi.IommuInfo.CAP_OFFSET);
    numbers.field(
        "struct vfio_iommu_type1_info_cap_iova_range", "nr_iovas", VfioAbi.IovaRangeCap.NR_IOVAS);
    numbers.field(
        "struct vfio_iommu_type1_info_cap_iova_range", "iova_ranges", VfioAbi.IovaRangeCap.SIZE);
    numbers.size("struct vfio_iova_range", VfioAbi.IovaRange.SIZE);
    numbers.field("struct vfio_iova_range", "start", VfioAbi.IovaRange.START);
    numbers.field("struct vfio_iova_range", "end", VfioAbi.IovaRange.END);
    numbers.size("struct vfio_iommu_type1_dma_map", VfioAbi.DmaMap.SIZE);
    numbers.field("struct vfio_iommu_type1_dma_map", "argsz", VfioAbi.DmaMap.ARGSZ);
    numbers.field("struct vfio_iommu_type1_dma_map", "flags", VfioAbi.DmaMap.FLAGS);
    numbers.field("struct vfio_iommu_type1_dma_map", "vaddr", VfioAbi.DmaMap.VADDR);
    numbers.field("struct vfio_iommu_type1_dma_map", "iova", VfioAbi.DmaMap.IOVA);
    numbers.field("struct vfio_iommu_type1_dma_map", "size", VfioAbi.DmaMap.BYTES);
    numbers.size("struct vfio_iommu_type1_dma_unmap", VfioAbi.DmaUnmap.SIZE);
    numbers.field("struct vfio_iommu_type1_dma_unmap", "argsz", VfioAbi.DmaUnmap.ARGSZ);
    numbers.field("struct vfio_iommu_type1_dma_unmap", "flags", VfioAbi.DmaUnmap.FLAGS);
    numbers.field("struct vfio_iommu_type1_dma_unmap", "iova", VfioAbi.DmaUnmap.IOVA);
    numbers.field("struct vfio_iommu_type1_dma_unmap", "size", VfioAbi.DmaUnmap.BYTES);
    compare("linux/vfio.h", "VFIO_API_VERSION");
  }

  @Test
  void interrupts() {
    numbers.field("struct vfio_irq_set", "argsz", VfioAbi.IrqSet.ARGSZ);
    numbers.field("struct vfio_irq_set", "flags", VfioAbi.IrqSet.FLAGS);
    numbers.field("struct vfio_irq_set", "index", VfioAbi.IrqSet.INDEX);
    numbers.field("struct vfio_irq_set", "start", VfioAbi.IrqSet.START);
    numbers.field("struct vfio_irq_set", "count", VfioAbi.IrqSet.COUNT);
    numbers.field("struct vfio_irq_set", "data", VfioAbi.IrqSet.DATA);
    compare("linux/vfio.h", "VFIO_API_VERSION");
    assertThat(VfioAbi.IrqSet.SIZE).isEqualTo(VfioAbi.IrqSet.DATA + Integer.BYTES);
  }

  @Test
  void iommufd() {
    numbers.value("IOMMU_IOAS_ALLOC", IommufdAbi.IOAS_ALLOC);
    numbers.value("IOMMU_IOAS_IOVA_RANGES", IommufdAbi.IOAS_IOVA_RANGES);
    numbers.value("IOMMU_IOAS_MAP", IommufdAbi.IOAS_MAP);
    numbers.value("IOMMU_IOAS_UNMAP", IommufdAbi.IOAS_UNMAP);
    numbers.value("IOMMU_IOAS_MAP_FIXED_IOVA", IommufdAbi.IoasMap.FIXED_IOVA);
    numbers.value("IOMMU_IOAS_MAP_WRITEABLE", IommufdAbi.IoasMap.WRITEABLE);
    numbers.value("IOMMU_IOAS_MAP_READABLE", IommufdAbi.IoasMap.READABLE);
    numbers.size("struct iommu_ioas_alloc", IommufdAbi.IoasAlloc.SIZE);
    numbers.field("struct iommu_ioas_alloc", "size", IommufdAbi.IoasAlloc.OWN_SIZE);
    numbers.field("struct iommu_ioas_alloc", "flags", IommufdAbi.IoasAlloc.FLAGS);
    numbers.field("struct iommu_ioas_alloc", "out_ioas_id", IommufdAbi.IoasAlloc.OUT_IOAS_ID);
    numbers.size("struct iommu_iova_range", IommufdAbi.IovaRange.SIZE);
    numbers.field("struct iommu_iova_range", "start", IommufdAbi.IovaRange.START);
    numbers.field("struct iommu_iova_range", "last", IommufdAbi.IovaRange.LAST);
    numbers.size("struct iommu_ioas_iova_ranges", IommufdAbi.IovaRanges.SIZE);
    numbers.field("struct iommu_ioas_iova_ranges", "size", IommufdAbi.IovaRanges.OWN_SIZE);
    numbers.field("struct iommu_ioas_iova_ranges", "ioas_id", IommufdAbi.IovaRanges.IOAS_ID);
    numbers.field("struct iommu_ioas_iova_ranges", "num_iovas", IommufdAbi.IovaRanges.NUM_IOVAS);
    numbers.field(
        "struct iommu_ioas_iova_ranges", "allowed_iovas", IommufdAbi.IovaRanges.ALLOWED_IOVAS);
    numbers.field(
        "struct iommu_ioas_iova_ranges",
        "out_iova_alignment",
        IommufdAbi.IovaRanges.OUT_IOVA_ALIGNMENT);
    numbers.size("struct iommu_ioas_map", IommufdAbi.IoasMap.SIZE);
    numbers.field("struct iommu_ioas_map", "size", IommufdAbi.IoasMap.OWN_SIZE);
    numbers.field("struct iommu_ioas_map", "flags", IommufdAbi.IoasMap.FLAGS);
    numbers.field("struct iommu_ioas_map", "ioas_id", IommufdAbi.IoasMap.IOAS_ID);
    numbers.field("struct iommu_ioas_map", "user_va", IommufdAbi.IoasMap.USER_VA);
    numbers.field("struct iommu_ioas_map", "length", IommufdAbi.IoasMap.LENGTH);
    numbers.field("struct iommu_ioas_map", "iova", IommufdAbi.IoasMap.IOVA);
    numbers.size("struct iommu_ioas_unmap", IommufdAbi.IoasUnmap.SIZE);
    numbers.field("struct iommu_ioas_unmap", "size", IommufdAbi.IoasUnmap.OWN_SIZE);
    numbers.field("struct iommu_ioas_unmap", "ioas_id", IommufdAbi.IoasUnmap.IOAS_ID);
    numbers.field("struct iommu_ioas_unmap", "iova", IommufdAbi.IoasUnmap.IOVA);
    numbers.field("struct iommu_ioas_unmap", "length", IommufdAbi.IoasUnmap.LENGTH);
    compare("linux/iommufd.h", "IOMMU_IOAS_MAP");
  }

  @Test
  void devicesOfIommufd() {
    numbers.value("VFIO_DEVICE_BIND_IOMMUFD", IommufdAbi.DEVICE_BIND_IOMMUFD);
    numbers.value("VFIO_DEVICE_ATTACH_IOMMUFD_PT", IommufdAbi.DEVICE_ATTACH_IOMMUFD_PT);
    numbers.size("struct vfio_device_bind_iommufd", IommufdAbi.Bind.SIZE);
    numbers.field("struct vfio_device_bind_iommufd", "argsz", IommufdAbi.Bind.ARGSZ);
    numbers.field("struct vfio_device_bind_iommufd", "flags", IommufdAbi.Bind.FLAGS);
    numbers.field("struct vfio_device_bind_iommufd", "iommufd", IommufdAbi.Bind.IOMMUFD);
    numbers.field("struct vfio_device_bind_iommufd", "out_devid", IommufdAbi.Bind.OUT_DEVID);
    numbers.field("struct vfio_device_attach_iommufd_pt", "argsz", IommufdAbi.Attach.ARGSZ);
    numbers.field("struct vfio_device_attach_iommufd_pt", "flags", IommufdAbi.Attach.FLAGS);
    numbers.field("struct vfio_device_attach_iommufd_pt", "pt_id", IommufdAbi.Attach.PT_ID);
    compare("linux/vfio.h", "VFIO_DEVICE_BIND_IOMMUFD");
  }

  /**
   * @param since a macro that headers have which are new enough
   */
  private void compare(String header, String since) {
    numbers.compareWhere(
        "defined " + since,
        "the kernel headers of this machine have no " + since + " in " + header);
  }
}
