/**
 * The NVMe driver: bring-up, the admin queue, I/O queue pairs, namespaces, recovery.
 *
 * <p>In: everything a host does to a controller through a {@link io.gpunvme.nvme.pci.PciFunction}.
 * Out: how the function is reached ({@code pci}), how layouts look ({@code spec}), what a
 * controller does ({@code sim}, which this package never uses). A reader starts at {@code
 * NvmeController}, then {@code BringUp}, {@code QueuePair}, {@code BlockDevice}, {@code Recovery};
 * {@code ExternalQueuePair} if something other than this package drives the queue.
 */
@NullMarked
package io.gpunvme.nvme.driver;

import org.jspecify.annotations.NullMarked;
