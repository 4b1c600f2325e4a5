package io.gpunvme.storage;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.queue.DeviceExtent;
import io.gpunvme.gpu.queue.StripeSet;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.Verdict;
import io.gpunvme.storage.path.extents.ExtentPath;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A file in a file system that we read ourselves, by the paths of its device. */
final class ExtentSource implements Source {
  private static final int SECTOR = 512;

  private final GpuStorage device;
  private final String name;
  private final List<FileExtent> extents;
  private final Runnable closing;

  /**
   * A file.
   *
   * @param device open for as long as this is
   * @param closing run when this is closed
   */
  ExtentSource(GpuStorage device, String name, List<FileExtent> extents, Runnable closing) {
    this.device = device;
    this.name = name;
    this.extents = List.copyOf(extents);
    this.closing = closing;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public long size() {
    return extents.isEmpty() ? 0 : extents.getLast().end();
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
    return SECTOR;
  }

  @Override
  public List<BlockRun> blocks(long offset, long length) {
    List<BlockRun> all = new ArrayList<>();
    for (FileExtent e : extents) {
      long from = Math.max(offset, e.fileOffset());
      long end = Math.min(offset + length, e.end());
      if (from < end && !e.isZeros()) {
        all.addAll(device.blocks(e.deviceOffset() + from - e.fileOffset(), end - from));
      }
    }
    return all;
  }

  @Override
  public StripeSet set() {
    return device.set();
  }

  @Override
  public List<DeviceExtent> extents() {
    return new SsdExtents(device).of(name, extents);
  }

  @Override
  public List<Verdict> verdicts() {
    return device.explain().verdicts();
  }

  @Override
  public DataPath open(PathKind kind) {
    Accelerator accelerator = device.accelerator();
    return new ExtentPath(device.path(kind), extents, accelerator);
  }

  /** Of the device nobody asked: what is read by extents is taken to be cold. */
  @Override
  public double resident(List<Range> ranges) {
    return 0;
  }

  @Override
  public void flush() {
    throw new StorageException(
        StorageException.Kind.UNSUPPORTED,
        name,
        -1,
        -1,
        "a file of an unmounted file system is read only: there is nothing to flush",
        null);
  }

  @Override
  public ExtentSource on(Accelerator other) {
    GpuStorage theirs = device.on(other);
    return new ExtentSource(theirs, name, extents, theirs::close);
  }

  @Override
  public void close() {
    closing.run();
  }
}
