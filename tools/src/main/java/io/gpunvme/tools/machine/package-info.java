/**
 * What is in this machine, as the kernel tells it: PCI functions, links, IOMMU groups, disks and
 * who uses them, and the software that matters to a GPU that drives an SSD.
 *
 * <p>In: reading sysfs and procfs once into an immutable picture, questions about that picture, and
 * handing a function from one kernel driver to another. Out: opening devices ({@code device}),
 * judging what stands in the way of what ({@code doctor}), GPUs as CUDA sees them ({@code accel}).
 */
@NullMarked
package io.gpunvme.tools.machine;

import org.jspecify.annotations.NullMarked;
