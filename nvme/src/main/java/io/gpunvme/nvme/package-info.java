/**
 * The failures of controllers, one hierarchy under {@link io.gpunvme.nvme.NvmeException}: what the
 * controller answered, what did not happen in time, what the controller did that it may not do.
 * Messages say what, where and what to do next. A request that cannot be right is an {@link
 * io.gpunvme.base.InvalidRequestException}, here as everywhere.
 *
 * <p>Layouts live in {@code spec}, bus-addressed memory in {@code memory}, PCI functions in {@code
 * pci}, the driver in {@code driver}.
 */
@NullMarked
package io.gpunvme.nvme;

import org.jspecify.annotations.NullMarked;
