/**
 * The failures of controllers, one hierarchy under {@link io.gpunvme.nvme.NvmeException}: errors
 * that the controller answers, timeouts, and violations of the protocol by the controller. Messages
 * say what, where and what to do next. An impossible request is an {@link
 * io.gpunvme.base.InvalidRequestException}, here as everywhere.
 *
 * <p>Layouts live in {@code spec}, bus-addressed memory in {@code memory}, PCI functions in {@code
 * pci}, the driver in {@code driver}.
 */
@NullMarked
package io.gpunvme.nvme;

import org.jspecify.annotations.NullMarked;
