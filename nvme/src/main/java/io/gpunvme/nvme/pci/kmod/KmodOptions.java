package io.gpunvme.nvme.pci.kmod;

import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.NumaOption;

/**
 * How to open a function of the kernel module. Immutable.
 *
 * @param noIommu consent to run where no IOMMU isolates the device: it can then read and write all
 *     memory of this machine, and a bug in this process can too
 * @param numa the NUMA node of its memory and of the threads that serve it
 * @param paths where the kernel shows the machine
 */
public record KmodOptions(boolean noIommu, NumaOption numa, HostPaths paths) {
  /** An IOMMU is required; this machine. */
  public static KmodOptions defaults() {
    return new KmodOptions(false, NumaOption.AUTO, HostPaths.host());
  }

  /** The same with or without the consent to run without an IOMMU. */
  public KmodOptions withNoIommu(boolean consent) {
    return new KmodOptions(consent, numa, paths);
  }

  /** The same with another choice of its NUMA node. */
  public KmodOptions withNuma(NumaOption choice) {
    return new KmodOptions(noIommu, choice, paths);
  }

  /** The same on another tree. */
  public KmodOptions withPaths(HostPaths tree) {
    return new KmodOptions(noIommu, numa, tree);
  }
}
