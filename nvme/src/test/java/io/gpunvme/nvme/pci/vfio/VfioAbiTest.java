package io.gpunvme.nvme.pci.vfio;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@link VfioAbi} and {@link IommufdAbi} say the same as this machine's kernel headers. */
class VfioAbiTest {
  private static final String OLD = "too old";

  @TempDir Path folder;
  private final Map<String, Long> ours = new TreeMap<>();
  private final StringBuilder program = new StringBuilder();

  private void value(String theirs, long our) {
    ours.put(theirs.replace(" ", "_"), our);
    program.append(
        "  printf(\"%s %%lld\\n\", (long long)(%s));\n"
            .formatted(theirs.replace(" ", "_"), theirs));
  }

  private void field(String struct, String field, long our) {
    value("__builtin_offsetof(struct " + struct + ", " + field + ")", our);
  }

  private void size(String struct, long our) {
    value("sizeof(struct " + struct + ")", our);
  }

  @Test
  void requestsAndFlagsAreTheHeaders() throws Exception {
    value("VFIO_API_VERSION", VfioAbi.API_VERSION);
    value("VFIO_TYPE1_IOMMU", VfioAbi.TYPE1_IOMMU);
    value("VFIO_TYPE1v2_IOMMU", VfioAbi.TYPE1V2_IOMMU);
    value("VFIO_NOIOMMU_IOMMU", VfioAbi.NOIOMMU_IOMMU);
    value("VFIO_GET_API_VERSION", VfioAbi.GET_API_VERSION);
    value("VFIO_CHECK_EXTENSION", VfioAbi.CHECK_EXTENSION);
    value("VFIO_SET_IOMMU", VfioAbi.SET_IOMMU);
    value("VFIO_GROUP_GET_STATUS", VfioAbi.GROUP_GET_STATUS);
    value("VFIO_GROUP_SET_CONTAINER", VfioAbi.GROUP_SET_CONTAINER);
    value("VFIO_GROUP_GET_DEVICE_FD", VfioAbi.GROUP_GET_DEVICE_FD);
    value("VFIO_DEVICE_GET_INFO", VfioAbi.DEVICE_GET_INFO);
    value("VFIO_DEVICE_GET_REGION_INFO", VfioAbi.DEVICE_GET_REGION_INFO);
    value("VFIO_DEVICE_SET_IRQS", VfioAbi.DEVICE_SET_IRQS);
    value("VFIO_DEVICE_RESET", VfioAbi.DEVICE_RESET);
    value("VFIO_IOMMU_GET_INFO", VfioAbi.IOMMU_GET_INFO);
    value("VFIO_IOMMU_MAP_DMA", VfioAbi.IOMMU_MAP_DMA);
    value("VFIO_IOMMU_UNMAP_DMA", VfioAbi.IOMMU_UNMAP_DMA);
    value("VFIO_PCI_CONFIG_REGION_INDEX", VfioAbi.CONFIG_REGION);
    value("VFIO_PCI_REQ_IRQ_INDEX", VfioAbi.REQUEST_IRQ);
    value("VFIO_GROUP_FLAGS_VIABLE", VfioAbi.GroupStatus.VIABLE);
    value("VFIO_DEVICE_FLAGS_RESET", VfioAbi.DeviceInfo.RESET);
    value("VFIO_DEVICE_FLAGS_PCI", VfioAbi.DeviceInfo.PCI);
    value("VFIO_REGION_INFO_FLAG_READ", VfioAbi.RegionInfo.READ);
    value("VFIO_REGION_INFO_FLAG_WRITE", VfioAbi.RegionInfo.WRITE);
    value("VFIO_REGION_INFO_FLAG_MMAP", VfioAbi.RegionInfo.MMAP);
    value("VFIO_REGION_INFO_FLAG_CAPS", VfioAbi.RegionInfo.CAPS);
    value("VFIO_REGION_INFO_CAP_SPARSE_MMAP", VfioAbi.SparseMmap.ID);
    value("VFIO_IOMMU_INFO_PGSIZES", VfioAbi.IommuInfo.PGSIZES);
    value("VFIO_IOMMU_INFO_CAPS", VfioAbi.IommuInfo.CAPS);
    value("VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE", VfioAbi.IovaRangeCap.ID);
    value("VFIO_DMA_MAP_FLAG_READ", VfioAbi.DmaMap.READ);
    value("VFIO_DMA_MAP_FLAG_WRITE", VfioAbi.DmaMap.WRITE);
    value("VFIO_IRQ_SET_DATA_EVENTFD", VfioAbi.IrqSet.DATA_EVENTFD);
    value("VFIO_IRQ_SET_ACTION_TRIGGER", VfioAbi.IrqSet.ACTION_TRIGGER);
    compare("linux/vfio.h", "VFIO_API_VERSION");
  }

  @Test
  void groupAndDevice() throws Exception {
    size("vfio_group_status", VfioAbi.GroupStatus.SIZE);
    field("vfio_group_status", "argsz", VfioAbi.GroupStatus.ARGSZ);
    field("vfio_group_status", "flags", VfioAbi.GroupStatus.FLAGS);
    field("vfio_device_info", "argsz", VfioAbi.DeviceInfo.ARGSZ);
    field("vfio_device_info", "flags", VfioAbi.DeviceInfo.FLAGS);
    field("vfio_device_info", "num_regions", VfioAbi.DeviceInfo.NUM_REGIONS);
    field("vfio_device_info", "num_irqs", VfioAbi.DeviceInfo.NUM_IRQS);
    // Later kernels append; what we ask for ends where that begins.
    field("vfio_device_info", "cap_offset", VfioAbi.DeviceInfo.SIZE);
    compare("linux/vfio.h", "VFIO_API_VERSION");
  }

  @Test
  void regions() throws Exception {
    size("vfio_region_info", VfioAbi.RegionInfo.SIZE);
    field("vfio_region_info", "argsz", VfioAbi.RegionInfo.ARGSZ);
    field("vfio_region_info", "flags", VfioAbi.RegionInfo.FLAGS);
    field("vfio_region_info", "index", VfioAbi.RegionInfo.INDEX);
    field("vfio_region_info", "cap_offset", VfioAbi.RegionInfo.CAP_OFFSET);
    field("vfio_region_info", "size", VfioAbi.RegionInfo.REGION_SIZE);
    field("vfio_region_info", "offset", VfioAbi.RegionInfo.OFFSET);
    size("vfio_info_cap_header", VfioAbi.CapHeader.SIZE);
    field("vfio_info_cap_header", "id", VfioAbi.CapHeader.ID);
    field("vfio_info_cap_header", "version", VfioAbi.CapHeader.VERSION);
    field("vfio_info_cap_header", "next", VfioAbi.CapHeader.NEXT);
    field("vfio_region_info_cap_sparse_mmap", "nr_areas", VfioAbi.SparseMmap.NR_AREAS);
    field("vfio_region_info_cap_sparse_mmap", "areas", VfioAbi.SparseMmap.SIZE);
    size("vfio_region_sparse_mmap_area", VfioAbi.SparseArea.SIZE);
    field("vfio_region_sparse_mmap_area", "offset", VfioAbi.SparseArea.OFFSET);
    field("vfio_region_sparse_mmap_area", "size", VfioAbi.SparseArea.AREA_SIZE);
    compare("linux/vfio.h", "VFIO_API_VERSION");
  }

  @Test
  void iommu() throws Exception {
    size("vfio_iommu_type1_info", VfioAbi.IommuInfo.SIZE);
    field("vfio_iommu_type1_info", "argsz", VfioAbi.IommuInfo.ARGSZ);
    field("vfio_iommu_type1_info", "flags", VfioAbi.IommuInfo.FLAGS);
    field("vfio_iommu_type1_info", "iova_pgsizes", VfioAbi.IommuInfo.IOVA_PGSIZES);
    field("vfio_iommu_type1_info", "cap_offset", VfioAbi.IommuInfo.CAP_OFFSET);
    field("vfio_iommu_type1_info_cap_iova_range", "nr_iovas", VfioAbi.IovaRangeCap.NR_IOVAS);
    field("vfio_iommu_type1_info_cap_iova_range", "iova_ranges", VfioAbi.IovaRangeCap.SIZE);
    size("vfio_iova_range", VfioAbi.IovaRange.SIZE);
    field("vfio_iova_range", "start", VfioAbi.IovaRange.START);
    field("vfio_iova_range", "end", VfioAbi.IovaRange.END);
    size("vfio_iommu_type1_dma_map", VfioAbi.DmaMap.SIZE);
    field("vfio_iommu_type1_dma_map", "argsz", VfioAbi.DmaMap.ARGSZ);
    field("vfio_iommu_type1_dma_map", "flags", VfioAbi.DmaMap.FLAGS);
    field("vfio_iommu_type1_dma_map", "vaddr", VfioAbi.DmaMap.VADDR);
    field("vfio_iommu_type1_dma_map", "iova", VfioAbi.DmaMap.IOVA);
    field("vfio_iommu_type1_dma_map", "size", VfioAbi.DmaMap.BYTES);
    size("vfio_iommu_type1_dma_unmap", VfioAbi.DmaUnmap.SIZE);
    field("vfio_iommu_type1_dma_unmap", "argsz", VfioAbi.DmaUnmap.ARGSZ);
    field("vfio_iommu_type1_dma_unmap", "flags", VfioAbi.DmaUnmap.FLAGS);
    field("vfio_iommu_type1_dma_unmap", "iova", VfioAbi.DmaUnmap.IOVA);
    field("vfio_iommu_type1_dma_unmap", "size", VfioAbi.DmaUnmap.BYTES);
    compare("linux/vfio.h", "VFIO_API_VERSION");
  }

  @Test
  void interrupts() throws Exception {
    field("vfio_irq_set", "argsz", VfioAbi.IrqSet.ARGSZ);
    field("vfio_irq_set", "flags", VfioAbi.IrqSet.FLAGS);
    field("vfio_irq_set", "index", VfioAbi.IrqSet.INDEX);
    field("vfio_irq_set", "start", VfioAbi.IrqSet.START);
    field("vfio_irq_set", "count", VfioAbi.IrqSet.COUNT);
    field("vfio_irq_set", "data", VfioAbi.IrqSet.DATA);
    compare("linux/vfio.h", "VFIO_API_VERSION");
    assertThat(VfioAbi.IrqSet.SIZE).isEqualTo(VfioAbi.IrqSet.DATA + Integer.BYTES);
  }

  @Test
  void iommufd() throws Exception {
    value("IOMMU_IOAS_ALLOC", IommufdAbi.IOAS_ALLOC);
    value("IOMMU_IOAS_IOVA_RANGES", IommufdAbi.IOAS_IOVA_RANGES);
    value("IOMMU_IOAS_MAP", IommufdAbi.IOAS_MAP);
    value("IOMMU_IOAS_UNMAP", IommufdAbi.IOAS_UNMAP);
    value("IOMMU_IOAS_MAP_FIXED_IOVA", IommufdAbi.IoasMap.FIXED_IOVA);
    value("IOMMU_IOAS_MAP_WRITEABLE", IommufdAbi.IoasMap.WRITEABLE);
    value("IOMMU_IOAS_MAP_READABLE", IommufdAbi.IoasMap.READABLE);
    size("iommu_ioas_alloc", IommufdAbi.IoasAlloc.SIZE);
    field("iommu_ioas_alloc", "size", IommufdAbi.IoasAlloc.OWN_SIZE);
    field("iommu_ioas_alloc", "flags", IommufdAbi.IoasAlloc.FLAGS);
    field("iommu_ioas_alloc", "out_ioas_id", IommufdAbi.IoasAlloc.OUT_IOAS_ID);
    size("iommu_iova_range", IommufdAbi.IovaRange.SIZE);
    field("iommu_iova_range", "start", IommufdAbi.IovaRange.START);
    field("iommu_iova_range", "last", IommufdAbi.IovaRange.LAST);
    size("iommu_ioas_iova_ranges", IommufdAbi.IovaRanges.SIZE);
    field("iommu_ioas_iova_ranges", "size", IommufdAbi.IovaRanges.OWN_SIZE);
    field("iommu_ioas_iova_ranges", "ioas_id", IommufdAbi.IovaRanges.IOAS_ID);
    field("iommu_ioas_iova_ranges", "num_iovas", IommufdAbi.IovaRanges.NUM_IOVAS);
    field("iommu_ioas_iova_ranges", "allowed_iovas", IommufdAbi.IovaRanges.ALLOWED_IOVAS);
    field("iommu_ioas_iova_ranges", "out_iova_alignment", IommufdAbi.IovaRanges.OUT_IOVA_ALIGNMENT);
    size("iommu_ioas_map", IommufdAbi.IoasMap.SIZE);
    field("iommu_ioas_map", "size", IommufdAbi.IoasMap.OWN_SIZE);
    field("iommu_ioas_map", "flags", IommufdAbi.IoasMap.FLAGS);
    field("iommu_ioas_map", "ioas_id", IommufdAbi.IoasMap.IOAS_ID);
    field("iommu_ioas_map", "user_va", IommufdAbi.IoasMap.USER_VA);
    field("iommu_ioas_map", "length", IommufdAbi.IoasMap.LENGTH);
    field("iommu_ioas_map", "iova", IommufdAbi.IoasMap.IOVA);
    size("iommu_ioas_unmap", IommufdAbi.IoasUnmap.SIZE);
    field("iommu_ioas_unmap", "size", IommufdAbi.IoasUnmap.OWN_SIZE);
    field("iommu_ioas_unmap", "ioas_id", IommufdAbi.IoasUnmap.IOAS_ID);
    field("iommu_ioas_unmap", "iova", IommufdAbi.IoasUnmap.IOVA);
    field("iommu_ioas_unmap", "length", IommufdAbi.IoasUnmap.LENGTH);
    compare("linux/iommufd.h", "IOMMU_IOAS_MAP");
  }

  @Test
  void devicesOfIommufd() throws Exception {
    value("VFIO_DEVICE_BIND_IOMMUFD", IommufdAbi.DEVICE_BIND_IOMMUFD);
    value("VFIO_DEVICE_ATTACH_IOMMUFD_PT", IommufdAbi.DEVICE_ATTACH_IOMMUFD_PT);
    size("vfio_device_bind_iommufd", IommufdAbi.Bind.SIZE);
    field("vfio_device_bind_iommufd", "argsz", IommufdAbi.Bind.ARGSZ);
    field("vfio_device_bind_iommufd", "flags", IommufdAbi.Bind.FLAGS);
    field("vfio_device_bind_iommufd", "iommufd", IommufdAbi.Bind.IOMMUFD);
    field("vfio_device_bind_iommufd", "out_devid", IommufdAbi.Bind.OUT_DEVID);
    field("vfio_device_attach_iommufd_pt", "argsz", IommufdAbi.Attach.ARGSZ);
    field("vfio_device_attach_iommufd_pt", "flags", IommufdAbi.Attach.FLAGS);
    field("vfio_device_attach_iommufd_pt", "pt_id", IommufdAbi.Attach.PT_ID);
    compare("linux/vfio.h", "VFIO_DEVICE_BIND_IOMMUFD");
  }

  /**
   * Compiles and runs the program.
   *
   * @param since a macro that headers have which are new enough
   */
  private void compare(String header, String since) throws IOException, InterruptedException {
    Path source = folder.resolve("abi.c");
    Path binary = folder.resolve("abi");
    Files.writeString(
        source,
        """
        #include <stdio.h>
        #if __has_include(<%s>)
        #include <%s>
        #endif
        int main(void) {
        #ifdef %s
        %s
        #else
          puts("%s");
        #endif
          return 0;
        }
        """
            .formatted(header, header, since, program, OLD));
    run("gcc", "-Wall", "-Werror", "-o", binary.toString(), source.toString());
    String output = run(binary.toString());
    if (output.startsWith(OLD)) {
      Assumptions.abort("the kernel headers of this machine have no " + since + " in " + header);
    }
    Map<String, Long> theirs =
        output
            .lines()
            .collect(
                Collectors.toMap(
                    line -> line.substring(0, line.lastIndexOf(' ')),
                    line -> Long.parseLong(line.substring(line.lastIndexOf(' ') + 1))));
    assertThat(ours).isNotEmpty().containsExactlyInAnyOrderEntriesOf(theirs);
  }

  private static String run(String... command) throws IOException, InterruptedException {
    Process process;
    try {
      process = new ProcessBuilder(List.of(command)).redirectErrorStream(true).start();
    } catch (IOException e) {
      Assumptions.abort("no " + command[0] + " on this machine");
      throw e;
    }
    String output = new String(process.getInputStream().readAllBytes());
    if (!process.waitFor(60, TimeUnit.SECONDS) || process.exitValue() != 0) {
      throw new AssertionError(List.of(command) + ": " + output);
    }
    return output;
  }
}
