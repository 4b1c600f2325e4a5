package io.gpunvme.core.storage;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.device.DeviceAddress;
import java.nio.file.Path;

/** What an address names, as a {@link Source}. */
final class Sources {
  private Sources() {}

  static Source open(StorageAddress address, Accelerator accelerator, StorageOptions options) {
    DeviceAddress device = address.device();
    Path file = address.file();
    if (file != null) {
      return new FileSource(file, address, accelerator, options);
    }
    if (device == null) {
      throw new IllegalStateException(address + " is neither a file nor a device");
    }
    return new DeviceSource(device, accelerator, options);
  }
}
