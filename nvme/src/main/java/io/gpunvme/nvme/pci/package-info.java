/**
 * A PCI function as the driver sees it: its BARs, its configuration space, and the mapping of
 * memory for its DMA.
 *
 * <p>In here: the interface that every transport implements (embedded controller, VFIO, vfio-user,
 * kernel module, sysfs), what its users need to know, and the NUMA node of a function or of the
 * functions that a disk is on ({@link io.gpunvme.nvme.pci.NumaHome}). Not in here: what functions
 * of this machine share ({@code host}), each transport's own package, anything that knows what an
 * NVMe register means ({@code driver}) or plays a controller ({@code sim}).
 */
@NullMarked
package io.gpunvme.nvme.pci;

import org.jspecify.annotations.NullMarked;
