package io.gpunvme.core.storage;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.device.DeviceAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** What an address names, as a {@link Source}. */
final class Sources {
  private Sources() {}

  static Source open(StorageAddress address, Accelerator accelerator, StorageOptions options) {
    SetShape shape = address.shape();
    if (shape != null) {
      return new SetSource(openAll(address.members(), accelerator, options), shape);
    }
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

  private static List<Source> openAll(
      List<StorageAddress> members, Accelerator accelerator, StorageOptions options) {
    List<Source> open = new ArrayList<>();
    try {
      for (StorageAddress m : members) {
        open.add(open(m, accelerator, options));
      }
      return open;
    } catch (RuntimeException e) {
      for (Source s : open) {
        try {
          s.close();
        } catch (RuntimeException second) {
          e.addSuppressed(second);
        }
      }
      throw e;
    }
  }
}
