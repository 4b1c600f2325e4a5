package io.gpunvme.storage;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.storage.fs.FileAddress;
import io.gpunvme.storage.path.StorageException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** What an address names, as a {@link Source}. */
final class Sources {
  private Sources() {}

  static Source open(StorageAddress address, Accelerator accelerator, StorageOptions options) {
    FileAddress inside = address.inside();
    if (inside != null) {
      return inside(inside, accelerator, options);
    }
    FileAddress partition = address.partition();
    if (partition != null) {
      return PartitionSource.open(partition, accelerator, options);
    }
    SetShape shape = address.shape();
    if (shape != null) {
      return new SetSource(openAll(address.members(), accelerator, options), shape);
    }
    DeviceAddress device = address.device();
    Path file = address.file();
    if (file != null) {
      return FileSource.open(file, address, accelerator, options);
    }
    if (device == null) {
      throw new IllegalStateException(address + " is neither a file nor a device");
    }
    return DeviceSource.open(device, accelerator, options);
  }

  private static Source inside(
      FileAddress address, Accelerator accelerator, StorageOptions options) {
    if (options.allowWrite()) {
      throw new StorageException(
          StorageException.Kind.UNSUPPORTED,
          address.toString(),
          -1,
          -1,
          "files of an unmounted file system are read only",
          null);
    }
    Volume volume = Volume.open(address, accelerator, options, false);
    try {
      GpuStorage device = Objects.requireNonNull(volume.storage());
      return new ExtentSource(
          device, address.toString(), volume.find(address.path()).extents(), volume::close);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, volume::close);
      throw e;
    }
  }

  private static List<Source> openAll(
      List<StorageAddress> members, Accelerator accelerator, StorageOptions options) {
    List<Source> open = new ArrayList<>();
    StorageOptions each = options.with(options.initiator().forEachOf(members.size(), accelerator));
    try {
      for (StorageAddress m : members) {
        open.add(open(m, accelerator, each));
      }
      return open;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, open, Source::close);
      throw e;
    }
  }
}
