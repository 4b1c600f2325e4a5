package io.gpunvme.cli;

import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.fs.FileAddress;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/**
 * Where models are: in files of this system, in a file system on a device, or on it without one.
 */
final class ModelPlace {
  /** What a MODEL is, for help. */
  static final String MODEL =
      "A safetensors file, an index of shards, a GGUF file (of a split one, any part), or the"
          + " folder of a model; with options as in file:/models/x?path=pinned.";

  @Option(
      names = "--device",
      paramLabel = "DEVICE",
      description =
          "The SSD (or image, partition, stripe:…) with the file system that MODEL is in, read"
              + " without the kernel (docs/file-systems.md); without MODEL, with a raw model"
              + " (docs/raw-models.md).")
  private @Nullable String device;

  boolean hasDevice() {
    return device != null;
  }

  /**
   * A model's address.
   *
   * @param model null: what is on the device
   */
  StorageAddress address(@Nullable String model) throws NoSuchFileException {
    String on = device;
    if (on == null) {
      if (model == null) {
        throw new UsageException("name a MODEL, or a --device with a raw model");
      }
      return existing(parse(model));
    }
    FileAddress place = FileAddress.parse(on);
    if (model == null) {
      return existing(StorageAddress.on(place));
    }
    return existing(StorageAddress.on(place.with(model.startsWith("/") ? model : "/" + model)));
  }

  /** The name of a file will do, as long as it looks like nothing else. */
  static StorageAddress parse(String text) {
    return StorageAddress.parse(text.contains(":") ? text : "file:" + text);
  }

  static StorageAddress existing(StorageAddress address) throws NoSuchFileException {
    Path file = address.file();
    if (file != null && !Files.exists(file)) {
      throw new NoSuchFileException(file.toString());
    }
    return address;
  }
}
