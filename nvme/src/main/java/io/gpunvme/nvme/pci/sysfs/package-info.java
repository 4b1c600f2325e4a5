/**
 * PCI functions through the files that sysfs has for each: registers mapped, physical addresses for
 * DMA. For machines with neither an IOMMU nor a driver of ours; root, and at one's own risk.
 *
 * <p>In: the refusals that keep this from doing harm unasked, opening, closing. Out: finding
 * physical addresses ({@code pci}, shared with VFIO without an IOMMU), who uses a disk.
 */
@NullMarked
package io.gpunvme.nvme.pci.sysfs;

import org.jspecify.annotations.NullMarked;
