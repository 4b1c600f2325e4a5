package io.gpunvme.cli;

import io.gpunvme.models.Manifest;
import io.gpunvme.models.Weights;
import io.gpunvme.storage.StorageAddress;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Finds the checksums of a model. */
final class ManifestFiles {
  static final String SUFFIX = ".manifest.json";

  private ManifestFiles() {}

  /**
   * Checksums to verify a model with.
   *
   * @param given a file's name; empty: those stored with the model, or in a file next to it
   */
  static Manifest of(Weights weights, StorageAddress address, String given) throws IOException {
    if (!given.isEmpty()) {
      return read(given);
    }
    if (weights.storedManifest().isPresent()) {
      return weights.storedManifest().get();
    }
    Path model = address.file();
    List<Path> there = model == null ? List.of() : beside(model);
    if (there.size() != 1) {
      throw new UsageException(
          "%s: %s; name one (--verify=FILE), or make one: gpunvme weights manifest %s"
              .formatted(
                  weights.name(),
                  there.isEmpty()
                      ? "no checksums in it or next to it"
                      : "several manifests: " + there,
                  model == null ? weights.name() + " --out FILE" : model));
    }
    return Manifest.read(there.getFirst());
  }

  static Manifest read(String name) throws NoSuchFileException {
    Path file = Path.of(name);
    if (!Files.exists(file)) {
      throw new NoSuchFileException(name);
    }
    return Manifest.read(file);
  }

  private static List<Path> beside(Path model) throws IOException {
    if (!Files.isDirectory(model)) {
      Path file = usual(model);
      return Files.exists(file) ? List.of(file) : List.of();
    }
    List<Path> all = new ArrayList<>();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(model, "*" + SUFFIX)) {
      files.forEach(all::add);
    }
    return all;
  }

  /** The default place of a manifest. */
  static Path usual(Path model) {
    return Files.isDirectory(model)
        ? model.resolve("model" + SUFFIX)
        : model.resolveSibling(model.getFileName() + SUFFIX);
  }
}
