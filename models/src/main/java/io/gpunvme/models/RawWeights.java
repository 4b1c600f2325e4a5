package io.gpunvme.models;

import io.gpunvme.base.CloseAll;
import io.gpunvme.models.format.MetaValue;
import io.gpunvme.models.format.ModelFiles;
import io.gpunvme.models.format.ModelFiles.Placed;
import io.gpunvme.models.raw.RawModel;
import io.gpunvme.models.raw.RawTensor;
import io.gpunvme.models.raw.Stripe;
import io.gpunvme.models.raw.Superblock;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.SetShape;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageReader;
import io.gpunvme.storage.Volume;
import io.gpunvme.storage.fs.FileAddress;
import io.gpunvme.storage.fs.ImageReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** A model on a raw device: one storage, whose offsets are the tensors'. */
final class RawWeights implements WeightSource {
  private final GpuStorage storage;
  private final RawModel model;
  private final Map<String, Placed> tensors = new LinkedHashMap<>();

  private RawWeights(GpuStorage storage, RawModel model) {
    this.storage = storage;
    this.model = model;
    model.tensors().forEach(t -> tensors.put(t.info().name(), new Placed(0, t.info())));
  }

  /**
   * Whether a file is an image that begins with a raw model, or with nothing at all: one that was
   * never written, or whose writing was interrupted. Files with a model's name begin with one.
   */
  static boolean isMeant(Path file) {
    if (!Files.exists(file) || Files.isDirectory(file)) {
      return false;
    }
    try (ImageReader reader = ImageReader.open(file)) {
      return Superblock.isThere(reader)
          || Superblock.isBlank(reader) && !ModelFiles.isModelName(file.toString());
    }
  }

  /**
   * Reads the superblock and the index.
   *
   * @param storage closed with this, and if this fails
   */
  static RawWeights open(GpuStorage storage) {
    try (StorageReader reader = new StorageReader(storage)) {
      return new RawWeights(storage, RawModel.read(reader, stripe(storage.address())));
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, storage::close);
      throw e;
    }
  }

  /**
   * The striped set that an address names, or is a partition of; stripes on one device are none.
   */
  static Stripe stripe(StorageAddress address) {
    FileAddress partition = address.partition();
    if (partition != null) {
      return stripe(Volume.device(partition));
    }
    SetShape shape = address.shape();
    return shape == null || !shape.isStriped() || address.members().size() < 2
        ? Stripe.NONE
        : new Stripe(address.members().size(), shape.unit());
  }

  @Override
  public String name() {
    return storage.address().toString();
  }

  @Override
  public String format() {
    return "raw model '%s' (%s), written %s"
        .formatted(model.superblock().name(), model.format(), model.superblock().created());
  }

  @Override
  public Map<String, Placed> tensors() {
    return Collections.unmodifiableMap(tensors);
  }

  @Override
  public Map<String, MetaValue> metadata() {
    return model.metadata();
  }

  @Override
  public List<String> files() {
    return List.of(name());
  }

  @Override
  public GpuStorage storage(int file) {
    return storage;
  }

  @Override
  public Optional<Manifest> storedManifest() {
    Map<String, Manifest.Entry> entries = new LinkedHashMap<>();
    for (RawTensor t : model.tensors()) {
      entries.put(t.info().name(), new Manifest.Entry(t.info().bytes(), t.crc32c()));
    }
    return Optional.of(new Manifest(entries));
  }

  @Override
  public void close() {
    storage.close();
  }
}
