package io.gpunvme.models.format;

import io.gpunvme.base.Reason;
import io.gpunvme.storage.fs.BlockReader;
import io.gpunvme.storage.fs.ImageReader;
import io.gpunvme.storage.path.StorageException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** A folder of the running system. */
record PathFolder(Path folder) implements ModelFolder {
  @Override
  public String name() {
    return folder.toString();
  }

  @Override
  public List<String> files() {
    try (Stream<Path> files = Files.list(folder)) {
      return files.filter(Files::isRegularFile).map(f -> f.getFileName().toString()).toList();
    } catch (IOException e) {
      throw new StorageException(
          StorageException.Kind.GONE, name(), -1, -1, "cannot be listed: " + Reason.of(e), e);
    }
  }

  @Override
  public Optional<BlockReader> open(String name) {
    try {
      Path file = folder.resolve(name);
      return Files.isRegularFile(file) ? Optional.of(ImageReader.open(file)) : Optional.empty();
    } catch (InvalidPathException e) {
      return Optional.empty();
    }
  }
}
