/**
 * PCI functions of other processes, over vfio-user: SPDK's NVMe target, another gpunvme's embedded
 * controller. docs/vfio-user.md.
 */
@NullMarked
package io.gpunvme.nvme.pci.vfiouser;

import org.jspecify.annotations.NullMarked;
