package io.gpunvme.storage;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.queue.DeviceExtent;
import io.gpunvme.gpu.queue.StripeSet;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.fs.FileAddress;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.fs.FileSystems;
import io.gpunvme.storage.fs.partition.Partition;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.Verdict;
import io.gpunvme.storage.path.extents.PartPath;
import java.util.List;
import java.util.Map;

/** A partition of a device, by the paths of the device. */
final class PartitionSource implements Source {
  private final GpuStorage device;
  private final String name;
  private final Partition partition;

  private PartitionSource(GpuStorage device, String name, Partition partition) {
    this.device = device;
    this.name = name;
    this.partition = partition;
  }

  /**
   * Opens the device and finds the partition.
   *
   * @throws io.gpunvme.storage.fs.FileSystemException if there is none of that number
   */
  static PartitionSource open(FileAddress place, Accelerator accelerator, StorageOptions options) {
    GpuStorage device = GpuStorage.open(Volume.device(place), accelerator, options);
    try (StorageReader reader = new StorageReader(device)) {
      return new PartitionSource(
          device,
          place.device() + "#" + place.partition(),
          FileSystems.partition(reader, place.partition(), device.blockSize()));
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, device::close);
      throw e;
    }
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public long size() {
    return partition.bytes();
  }

  @Override
  public NumaHome home() {
    return device.home();
  }

  @Override
  public Map<String, String> homes() {
    return device.homes();
  }

  @Override
  public int blockSize() {
    return device.blockSize();
  }

  @Override
  public List<BlockRun> blocks(long offset, long length) {
    return device.blocks(partition.firstByte() + offset, length);
  }

  @Override
  public StripeSet set() {
    return device.set();
  }

  @Override
  public List<DeviceExtent> extents() {
    return new SsdExtents(device)
        .of(name, List.of(new FileExtent(0, size(), partition.firstByte())));
  }

  @Override
  public List<Verdict> verdicts() {
    return device.explain().verdicts();
  }

  @Override
  public DataPath open(PathKind kind) {
    return new PartPath(device.path(kind), partition.firstByte(), partition.bytes());
  }

  /** Of the device nobody asked: it is taken to be cold. */
  @Override
  public double resident(List<Range> ranges) {
    return 0;
  }

  /** Of the whole device: what is cached is not cached by partitions. */
  @Override
  public void flush() {
    device.flush();
  }

  @Override
  public PartitionSource on(Accelerator other) {
    return new PartitionSource(device.on(other), name, partition);
  }

  @Override
  public void close() {
    device.close();
  }
}
