package io.gpunvme.nvme.pci.sysfs;

import io.gpunvme.nvme.pci.HostPaths;

/**
 * How to open a function through sysfs. Immutable.
 *
 * @param unsafe consent to what {@link SysfsFunction} says about its dangers
 * @param paths where the kernel shows the machine
 */
public record SysfsOptions(boolean unsafe, HostPaths paths) {}
