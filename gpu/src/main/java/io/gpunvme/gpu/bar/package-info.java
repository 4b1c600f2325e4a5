/**
 * Memory of another PCI function, a GPU's, found behind that function's BAR and given to a
 * controller.
 *
 * <p>In: a function's memory BAR in this process's address space, the search for a buffer in it by
 * marks that the buffer's owner writes, and the controller that maps what was found. Out: whose
 * memory it is and how it writes marks ({@code accel}), which controllers do this ({@code device}),
 * how a BAR gets into an IOMMU's table ({@code nvme.pci}).
 */
@NullMarked
package io.gpunvme.gpu.bar;

import org.jspecify.annotations.NullMarked;
