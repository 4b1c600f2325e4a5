package io.gpunvme.nvme.pci.vfio;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.NumaOption;
import java.util.Locale;

/**
 * How to open a function through VFIO. Immutable.
 *
 * @param noIommu consent to run without an IOMMU: the device can then read and write all memory of
 *     this machine, and a bug in this process can too
 * @param iommufd whether to use iommufd and the device's own node instead of its group
 * @param numa the NUMA node of its memory and of the threads that serve it
 * @param paths where the kernel shows the machine
 */
public record VfioOptions(boolean noIommu, Iommufd iommufd, NumaOption numa, HostPaths paths) {
  /** Which of the kernel's two interfaces. */
  public enum Iommufd {
    /** The group, unless the kernel has only device nodes. */
    AUTO,
    /** iommufd; refused where the kernel has none. */
    TRUE,
    /** The group. */
    FALSE;

    /**
     * Reads {@code auto}, {@code true} or {@code false}.
     *
     * @throws InvalidRequestException if it is none of them
     */
    public static Iommufd parse(String text) {
      for (Iommufd value : values()) {
        if (value.name().toLowerCase(Locale.ROOT).equals(text)) {
          return value;
        }
      }
      throw new InvalidRequestException("iommufd=" + text + ": it is auto, true or false");
    }
  }

  /** An IOMMU is required; this machine; the kernel decides. */
  public static VfioOptions defaults() {
    return new VfioOptions(false, Iommufd.AUTO, NumaOption.AUTO, HostPaths.host());
  }

  /** The same with or without the consent to run without an IOMMU. */
  public VfioOptions withNoIommu(boolean consent) {
    return new VfioOptions(consent, iommufd, numa, paths);
  }

  /** The same with another interface. */
  public VfioOptions withIommufd(Iommufd choice) {
    return new VfioOptions(noIommu, choice, numa, paths);
  }

  /** The same with another choice of its NUMA node. */
  public VfioOptions withNuma(NumaOption choice) {
    return new VfioOptions(noIommu, iommufd, choice, paths);
  }

  /** The same on another tree. */
  public VfioOptions withPaths(HostPaths tree) {
    return new VfioOptions(noIommu, iommufd, numa, tree);
  }
}
