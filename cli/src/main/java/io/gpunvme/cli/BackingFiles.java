package io.gpunvme.cli;

import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.Volume;
import io.gpunvme.storage.fs.FileAddress;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** The files of this machine that hold the data of an address, whatever the form of the address. */
final class BackingFiles {
  private BackingFiles() {}

  /** The files; none if the data is on SSDs only. */
  static List<Path> of(StorageAddress address) {
    FileAddress place = address.inside() == null ? address.partition() : address.inside();
    if (place != null) {
      return of(Volume.device(place));
    }
    Path file = address.file();
    if (file != null) {
      return List.of(file);
    }
    DeviceAddress device = address.device();
    String image = device == null ? null : device.option("file");
    return image == null
        ? address.members().stream().flatMap(m -> of(m).stream()).toList()
        : List.of(Path.of(image));
  }

  /** Whether both are the same file, or {@code one} is a folder that contains {@code other}. */
  static boolean overlap(Path one, Path other) throws IOException {
    if (!Files.exists(one) || !Files.exists(other)) {
      return false;
    }
    if (Files.isSameFile(one, other)) {
      return true;
    }
    return Files.isDirectory(one) && other.toRealPath().startsWith(one.toRealPath());
  }
}
