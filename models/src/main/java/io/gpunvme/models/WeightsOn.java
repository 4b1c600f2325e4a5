package io.gpunvme.models;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.models.format.MetaValue;
import io.gpunvme.models.format.ModelFiles.Placed;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.fs.BlockReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Weights for another accelerator: its own storages over what the first ones have open. */
final class WeightsOn implements WeightSource {
  private final WeightSource first;
  private final List<GpuStorage> storages = new ArrayList<>();

  /**
   * Opens a storage for each file.
   *
   * @param first knows the tensors; stays open longer
   */
  WeightsOn(WeightSource first, Accelerator other) {
    this.first = first;
    try {
      for (int file = 0; file < first.files().size(); file++) {
        storages.add(first.storage(file).on(other));
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::close);
      throw e;
    }
  }

  @Override
  public String name() {
    return first.name();
  }

  @Override
  public String format() {
    return first.format();
  }

  @Override
  public Map<String, Placed> tensors() {
    return first.tensors();
  }

  @Override
  public Map<String, MetaValue> metadata() {
    return first.metadata();
  }

  @Override
  public List<String> files() {
    return first.files();
  }

  @Override
  public GpuStorage storage(int file) {
    return storages.get(file);
  }

  @Override
  public Optional<BlockReader> beside(String name) {
    return first.beside(name);
  }

  @Override
  public Optional<Manifest> storedManifest() {
    return first.storedManifest();
  }

  @Override
  public void close() {
    CloseAll.each(storages, GpuStorage::close);
  }
}
