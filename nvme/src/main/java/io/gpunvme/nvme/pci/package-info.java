/**
 * A PCI function as the driver sees it: its BARs, its configuration space, and the mapping of
 * memory for its DMA.
 *
 * <p>In: the interface every transport implements (simulated controller, VFIO, vfio-user, kernel
 * module) and what all of them share. Out: anything that knows what an NVMe register means ({@code
 * driver}) or plays a controller ({@code sim}).
 */
@NullMarked
package io.gpunvme.nvme.pci;

import org.jspecify.annotations.NullMarked;
