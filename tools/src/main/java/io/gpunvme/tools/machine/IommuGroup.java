package io.gpunvme.tools.machine;

import io.gpunvme.nvme.pci.PciAddress;
import java.util.List;

/**
 * Functions that the IOMMU cannot tell apart, so that they can only be given away together.
 *
 * @param name its number
 * @param type of its default domain: {@code DMA}, {@code DMA-FQ} (translated), {@code identity}
 *     (not translated), {@code blocked}, {@code auto}; empty if the kernel does not say
 * @param members all functions in it, by address
 */
public record IommuGroup(String name, String type, List<PciAddress> members) {
  /** Copies the list. */
  public IommuGroup {
    members = List.copyOf(members);
  }

  /** Whether bus addresses are translated for the kernel's own drivers. */
  public boolean translated() {
    return !type.equals("identity");
  }
}
