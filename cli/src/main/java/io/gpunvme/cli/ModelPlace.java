package io.gpunvme.cli;

import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.fs.FileAddress;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The places of models: files of this machine, a file system on a device, or the device itself. */
final class ModelPlace {
  /** What a MODEL is, for help. */
  static final String MODEL =
      "A safetensors file, an index of shards, a GGUF file (any part of a split one), or the"
          + " folder of a model. Options go as in file:/models/x?path=pinned.";

  @Option(
      names = "--device",
      paramLabel = "DEVICE",
      description =
          "The SSD (or image, partition, stripe:…) with the file system of MODEL, which is read"
              + " without the kernel (docs/file-systems.md). Without MODEL: a device with a raw"
              + " model (docs/raw-models.md).")
  private @Nullable String device;

  boolean hasDevice() {
    return device != null;
  }

  /**
   * A model's address.
   *
   * @param model null: the raw model on the device
   */
  StorageAddress address(@Nullable String model) throws NoSuchFileException {
    String on = device;
    if (on == null) {
      if (model == null) {
        throw new UsageException("give a MODEL, or a --device with a raw model");
      }
      return existing(parse(model));
    }
    FileAddress place = FileAddress.parse(on);
    if (model == null) {
      return existing(StorageAddress.on(place));
    }
    return existing(StorageAddress.on(place.with(model.startsWith("/") ? model : "/" + model)));
  }

  /** The name of a file is enough, unless it has a colon like an address. */
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
