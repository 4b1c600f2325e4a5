package io.gpunvme.storage;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.storage.fs.BlockReader;
import io.gpunvme.storage.fs.FileAddress;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystem;
import io.gpunvme.storage.fs.FileSystemOptions;
import io.gpunvme.storage.fs.FileSystems;
import io.gpunvme.storage.fs.ImageReader;
import io.gpunvme.storage.fs.OpenedFileSystem;
import io.gpunvme.storage.fs.partition.Partition;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The file system on an SSD that this process drives, or in an image, read without the kernel. Safe
 * for all threads.
 */
public final class Volume implements AutoCloseable {
  private static final int SECTOR = 512;
  private static final int LARGE_SECTOR = 4096;

  private final BlockReader reader;
  private final @Nullable GpuStorage storage;
  private final int blockBytes;
  private final OpenedFileSystem opened;

  private Volume(
      BlockReader reader,
      @Nullable GpuStorage storage,
      int blockBytes,
      FileAddress address,
      boolean ignoreJournal) {
    this.reader = reader;
    this.storage = storage;
    this.blockBytes = blockBytes;
    int sector = blockBytes == LARGE_SECTOR ? LARGE_SECTOR : SECTOR;
    opened =
        FileSystems.open(reader, new FileSystemOptions(address.partition(), sector, ignoreJournal));
  }

  /**
   * Opens the device of an address and the file system on it. A controller, or a file with {@code
   * path=}, is read through {@link GpuStorage}; any other file is read directly.
   *
   * @param address its path is ignored
   * @param accelerator the one whose pinned memory is read into; requested only if it is needed;
   *     the caller closes it afterwards
   * @param ignoreJournal see {@link FileSystemOptions}
   * @throws io.gpunvme.base.InvalidRequestException if the address makes no sense
   * @throws io.gpunvme.storage.fs.FileSystemException if there is no file system that can be read
   */
  public static Volume open(
      FileAddress address,
      Supplier<Accelerator> accelerator,
      StorageOptions options,
      boolean ignoreJournal) {
    StorageAddress device = device(address);
    Path file = device.file();
    if (file != null && device.path() == null && device.options().isEmpty()) {
      return opened(ImageReader.open(file), null, SECTOR, address, ignoreJournal);
    }
    return open(address, device, accelerator.get(), options, ignoreJournal);
  }

  /**
   * Opens the device of an address as {@link GpuStorage}, and the file system on it.
   *
   * @throws io.gpunvme.storage.fs.FileSystemException if there is no file system that can be read
   */
  public static Volume open(
      FileAddress address, Accelerator accelerator, StorageOptions options, boolean ignoreJournal) {
    return open(address, device(address), accelerator, options, ignoreJournal);
  }

  private static Volume open(
      FileAddress address,
      StorageAddress device,
      Accelerator accelerator,
      StorageOptions options,
      boolean ignoreJournal) {
    Path file = device.file();
    GpuStorage storage = GpuStorage.open(device, accelerator, options);
    try {
      int block = file == null ? storage.alignment() : SECTOR;
      return opened(new StorageReader(storage), storage, block, address, ignoreJournal);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, storage::close);
      throw e;
    }
  }

  /**
   * The device of an address; the name of a file is enough, unless it looks like another address.
   *
   * @throws io.gpunvme.base.InvalidRequestException if it makes no sense
   */
  public static StorageAddress device(FileAddress address) {
    return StorageAddress.parse(deviceText(address));
  }

  static String deviceText(FileAddress address) {
    String text = address.device();
    return text.contains(":") ? text : "file:" + text;
  }

  private static Volume opened(
      BlockReader reader,
      @Nullable GpuStorage storage,
      int blockBytes,
      FileAddress address,
      boolean ignoreJournal) {
    return CloseAll.orClose(
        () -> new Volume(reader, storage, blockBytes, address, ignoreJournal), reader::close);
  }

  /** What is in it; extents count from the start of the whole device. */
  public FileSystem fileSystem() {
    return opened.fileSystem();
  }

  /** The partition of the file system; null: it fills the device. */
  public @Nullable Partition partition() {
    return opened.partition();
  }

  /** Irregularities and how they were handled; mostly empty. */
  public List<String> notes() {
    return opened.notes();
  }

  /** A file or folder, a link followed. */
  public FileNode find(String path) {
    return fileSystem().find(path, true);
  }

  /** The storage below it; null if it is an image that is read directly. */
  public @Nullable GpuStorage storage() {
    return storage;
  }

  /**
   * A file in it as storage of its own.
   *
   * @return to be closed before this
   * @throws io.gpunvme.storage.fs.FileSystemException if there is no such file, or it is not a file
   * @throws IllegalStateException if the device was not opened as storage
   */
  public GpuStorage file(String path) {
    GpuStorage device = storage;
    if (device == null) {
      throw new IllegalStateException(
          reader.name()
              + " is an image file: read it with a reader, it cannot be opened as storage");
    }
    return GpuStorage.over(device, reader.name() + ":" + path, find(path).extents());
  }

  /** How it is read, as text for users. */
  public String how() {
    GpuStorage by = storage;
    return by == null
        ? "an image file, read through the kernel"
        : String.join(
            ", ",
            by.explain().modes().entrySet().stream()
                .map(e -> e.getKey() + ": " + e.getValue())
                .toList());
  }

  /** Bytes in a logical block of the device; 512 for an image. */
  public int blockBytes() {
    return blockBytes;
  }

  /** Closes the device too. Idempotent. */
  @Override
  public void close() {
    CloseAll.all(reader, storage);
  }
}
