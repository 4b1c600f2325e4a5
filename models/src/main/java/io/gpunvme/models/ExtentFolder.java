package io.gpunvme.models;

import io.gpunvme.base.CloseAll;
import io.gpunvme.models.format.ModelFolder;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageReader;
import io.gpunvme.storage.fs.BlockReader;
import io.gpunvme.storage.fs.FileExtent;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Files at known places of a device. */
final class ExtentFolder implements ModelFolder {
  private final GpuStorage device;
  private final String name;
  private final Map<String, List<FileExtent>> places;

  /**
   * A folder.
   *
   * @param name in messages
   * @param places where the bytes of each file are
   */
  ExtentFolder(GpuStorage device, String name, Map<String, List<FileExtent>> places) {
    this.device = device;
    this.name = name;
    this.places = Map.copyOf(places);
  }

  @Override
  public String name() {
    return name;
  }

  /** A file, for an accelerator. */
  GpuStorage storage(String file) {
    return GpuStorage.over(device, name + "/" + file, places.getOrDefault(file, List.of()));
  }

  @Override
  public List<String> files() {
    return List.copyOf(places.keySet());
  }

  @Override
  public Optional<BlockReader> open(String file) {
    return places.containsKey(file) ? Optional.of(Reader.of(storage(file))) : Optional.empty();
  }

  /** Closes its storage too. */
  private record Reader(GpuStorage storage, StorageReader bytes) implements BlockReader {
    static Reader of(GpuStorage storage) {
      return CloseAll.orClose(
          () -> new Reader(storage, new StorageReader(storage)), storage::close);
    }

    @Override
    public String name() {
      return bytes.name();
    }

    @Override
    public long size() {
      return bytes.size();
    }

    @Override
    public void read(long offset, MemorySegment target) {
      bytes.read(offset, target);
    }

    @Override
    public void close() {
      try {
        bytes.close();
      } finally {
        storage.close();
      }
    }
  }
}
