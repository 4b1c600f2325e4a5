/**
 * PCI functions through the kernel's VFIO: registers mapped, configuration space, DMA behind an
 * IOMMU.
 *
 * <p>In: opening a function by its group or by iommufd, the kernel's structures, mapping memory for
 * DMA. Out: what an NVMe register means ({@code driver}), binding a function to vfio-pci (the
 * command line does that), access without VFIO ({@code sysfs}).
 */
@NullMarked
package io.gpunvme.nvme.pci.vfio;

import org.jspecify.annotations.NullMarked;
