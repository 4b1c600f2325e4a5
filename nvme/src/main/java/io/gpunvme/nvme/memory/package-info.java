/**
 * Memory a controller can reach, and the descriptors that tell it where: bus addresses, PRP lists,
 * SGLs.
 *
 * <p>In: ranges with bus addresses, page-aligned buffers made from them, the PRP and SGL builders;
 * the interface through which another device's memory can be copied, and parts of its BAR. Out: who
 * maps memory for which device ({@code pci}), what a command means ({@code driver}). A bus address
 * is what the controller puts on PCIe (an IOVA with an IOMMU, a physical address without); it is
 * never a Java pointer and never dereferenced here.
 */
@NullMarked
package io.gpunvme.nvme.memory;

import org.jspecify.annotations.NullMarked;
