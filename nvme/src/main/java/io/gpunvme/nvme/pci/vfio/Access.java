package io.gpunvme.nvme.pci.vfio;

import io.gpunvme.nvme.pci.host.DeviceFile;

/**
 * A device and what translates its bus addresses.
 *
 * @param device also in {@code opened}
 * @param domain closed before {@code opened}
 * @param opened every file of this
 */
record Access(DeviceFile device, IommuDomain domain, Opened opened) implements AutoCloseable {
  @Override
  public void close() {
    try {
      domain.close();
    } finally {
      opened.close();
    }
  }
}
