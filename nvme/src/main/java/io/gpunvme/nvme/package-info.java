/**
 * The errors every NVMe room throws, and how sizes are read; nothing else.
 *
 * <p>One hierarchy under {@link io.gpunvme.nvme.NvmeException}: what the controller answered, what
 * did not happen in time, what the controller did that it may not do, what the caller asked that
 * cannot be done. Messages say what, where and what to do next. Layouts live in {@code spec},
 * bus-addressed memory in {@code memory}, PCI functions in {@code pci}, the driver in {@code
 * driver}, the embedded controller in {@code sim}.
 */
@NullMarked
package io.gpunvme.nvme;

import org.jspecify.annotations.NullMarked;
