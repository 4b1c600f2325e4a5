package io.gpunvme.nvme.pci.kmod;

import io.gpunvme.nvme.pci.HostPaths;

/**
 * How to open a function of the kernel module. Immutable.
 *
 * @param noIommu consent to run where no IOMMU isolates the device: it can then read and write all
 *     memory of this machine, and a bug in this process can too
 * @param paths where the kernel shows the machine
 */
public record KmodOptions(boolean noIommu, HostPaths paths) {
  /** An IOMMU is required; this machine. */
  public static KmodOptions defaults() {
    return new KmodOptions(false, HostPaths.host());
  }

  /** The same with or without the consent to run without an IOMMU. */
  public KmodOptions withNoIommu(boolean consent) {
    return new KmodOptions(consent, paths);
  }

  /** The same on another tree. */
  public KmodOptions withPaths(HostPaths tree) {
    return new KmodOptions(noIommu, tree);
  }
}
