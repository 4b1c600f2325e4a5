package io.gpunvme.models;

import io.gpunvme.base.CloseAll;
import io.gpunvme.models.format.MetaValue;
import io.gpunvme.models.format.ModelFiles;
import io.gpunvme.models.format.ModelFiles.ModelFile;
import io.gpunvme.models.format.ModelFiles.Placed;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.fs.BlockReader;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/** Files of a model. */
final class FileWeights implements WeightSource {
  private final String name;
  private final ModelFiles model;
  private final List<GpuStorage> storages = new ArrayList<>();
  private final AutoCloseableWithoutException below;

  /** What is closed at the end. */
  interface AutoCloseableWithoutException {
    /** Closes it. */
    void close();
  }

  /**
   * Opens the storage of each file.
   *
   * @param model closed with this
   * @param below closed last
   */
  FileWeights(
      String name,
      ModelFiles model,
      Function<ModelFile, GpuStorage> open,
      AutoCloseableWithoutException below) {
    this.name = name;
    this.model = model;
    this.below = below;
    try {
      model.files().forEach(f -> storages.add(open.apply(f)));
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::close);
      throw e;
    }
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String format() {
    String format = model.files().getFirst().header().format();
    int files = model.files().size();
    return files == 1 ? format : format + ", " + files + " files";
  }

  @Override
  public Map<String, Placed> tensors() {
    return model.tensors();
  }

  @Override
  public Map<String, MetaValue> metadata() {
    Map<String, MetaValue> all = new LinkedHashMap<>();
    model.files().forEach(f -> f.header().metadata().forEach(all::putIfAbsent));
    return all;
  }

  @Override
  public List<String> files() {
    return model.files().stream().map(ModelFile::name).toList();
  }

  @Override
  public GpuStorage storage(int file) {
    return storages.get(file);
  }

  @Override
  public Optional<BlockReader> beside(String file) {
    return model.beside(file);
  }

  @Override
  public void close() {
    CloseAll.all(() -> CloseAll.each(storages, GpuStorage::close), model, below::close);
  }
}
