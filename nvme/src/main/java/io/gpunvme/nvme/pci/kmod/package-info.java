/**
 * PCI functions through the kernel module gpunvme: registers mapped, memory of the process and of
 * other devices (dma-buf) pinned for DMA, with an IOMMU or without.
 *
 * <p>In: opening the module's file of a function, its calls, checking what it answers. Out: the
 * module itself ({@code kmod/}), loading it and binding a function to it (scripts and the command
 * line do that), whose memory it is ({@code memory}).
 */
@NullMarked
package io.gpunvme.nvme.pci.kmod;

import org.jspecify.annotations.NullMarked;
