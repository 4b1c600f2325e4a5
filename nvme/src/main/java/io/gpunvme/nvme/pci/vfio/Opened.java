package io.gpunvme.nvme.pci.vfio;

import io.gpunvme.nvme.pci.host.DeviceFile;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * What was opened on the way to a device, closed in the opposite order: the device before its
 * group, the group before its container.
 */
final class Opened implements AutoCloseable {
  private final Deque<DeviceFile> files = new ArrayDeque<>();

  DeviceFile add(DeviceFile file) {
    files.push(file);
    return file;
  }

  @Override
  public void close() {
    files.forEach(DeviceFile::close);
  }
}
