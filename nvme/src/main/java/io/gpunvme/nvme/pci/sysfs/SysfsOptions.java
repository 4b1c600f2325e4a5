package io.gpunvme.nvme.pci.sysfs;

import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.NumaOption;

/**
 * How to open a function through sysfs. Immutable.
 *
 * @param unsafe consent to what {@link SysfsFunction} says about its dangers
 * @param numa the NUMA node of its memory and of the threads that serve it
 * @param paths where the kernel shows the machine
 */
public record SysfsOptions(boolean unsafe, NumaOption numa, HostPaths paths) {}
