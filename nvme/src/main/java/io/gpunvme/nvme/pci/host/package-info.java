/**
 * What functions of this machine share, whichever way they are reached: files in sysfs and device
 * nodes, mapped BARs, huge pages, physical addresses, IOVAs, the lock of a function.
 *
 * <p>Not in here: how a function is opened; each transport has its own package beside this one.
 */
@NullMarked
package io.gpunvme.nvme.pci.host;

import org.jspecify.annotations.NullMarked;
