package io.gpunvme.models;

import io.gpunvme.models.format.MetaValue;
import io.gpunvme.models.format.ModelFiles.Placed;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.fs.BlockReader;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Where weights lie: tensors by name, and the storage of each file they are in. */
interface WeightSource extends AutoCloseable {
  /** Its name in messages. */
  String name();

  /** What it is, e.g. {@code safetensors}. */
  String format();

  Map<String, Placed> tensors();

  Map<String, MetaValue> metadata();

  /** Names of the files, by number. */
  List<String> files();

  /** What {@link Placed#file} is read from. */
  GpuStorage storage(int file);

  /**
   * Opens another file of the folder.
   *
   * @return empty if there is none; the caller closes it
   */
  default Optional<BlockReader> beside(String name) {
    return Optional.empty();
  }

  /** Checksums that are stored with the tensors. */
  default Optional<Manifest> storedManifest() {
    return Optional.empty();
  }

  @Override
  void close();
}
