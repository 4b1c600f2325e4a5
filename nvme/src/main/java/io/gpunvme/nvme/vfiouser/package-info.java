/**
 * The vfio-user protocol: messages between a PCI function and its user, over a UNIX socket, both
 * ends alike. docs/vfio-user.md.
 */
@NullMarked
package io.gpunvme.nvme.vfiouser;

import org.jspecify.annotations.NullMarked;
