package io.gpunvme.cli;

import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.device.Transport;
import io.gpunvme.storage.StorageAddress;
import java.nio.file.Path;

/** An ordinary file as the blocks of an SSD in this process, for kernels, which read SSDs only. */
final class FileAsSsd {
  private FileAsSsd() {}

  /** The embedded SSD's address. */
  static StorageAddress of(Path file, boolean writable) {
    int workers = Math.max(1, Runtime.getRuntime().availableProcessors() / 2);
    DeviceAddress device =
        DeviceAddress.parse(Transport.SIM + ":")
            .with("file", file.toString())
            .with("latency", "0")
            .with("workers", Integer.toString(workers));
    return StorageAddress.parse((writable ? device : device.with("readonly", "on")).toString());
  }
}
