package io.gpunvme.storage;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.nvme.pci.NumaOption;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.Verdict;
import io.gpunvme.storage.path.cufile.CuFilePath;
import io.gpunvme.storage.path.file.SourceFile;
import io.gpunvme.storage.path.mmap.MmapPath;
import io.gpunvme.storage.path.pinned.PinnedPath;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** A file of a mounted file system. */
final class FileSource implements Source {
  /**
   * Ranges whose residency stands for that of all, if there are more; about as many places are
   * looked at.
   */
  private static final int SAMPLES = 64;

  /** In each of several ranges. */
  private static final int LEAST_WINDOWS = 4;

  private final SourceFile file;
  private final Accelerator accelerator;
  private final StorageOptions options;
  private final FileOptions own;

  /** Whether somebody else closes the file. */
  private final boolean borrowed;

  /** Where its SSD is. */
  private final NumaHome disk;

  /** The size when it was last asked for. */
  private volatile long lastSize;

  private FileSource(
      SourceFile file,
      FileOptions own,
      Accelerator accelerator,
      StorageOptions options,
      boolean borrowed) {
    this.file = file;
    this.own = own;
    this.accelerator = accelerator;
    this.options = options;
    this.borrowed = borrowed;
    disk = NumaHome.ofBlockDevice(HostPaths.host(), file.device(), own.numa());
  }

  static FileSource open(
      Path name, StorageAddress address, Accelerator accelerator, StorageOptions options) {
    FileOptions own = FileOptions.of(address.options());
    SourceFile file = SourceFile.open(name.toString(), options.allowWrite());
    return CloseAll.orClose(
        () -> new FileSource(file, own, accelerator, options, false), file::close);
  }

  /** The same file, even if its name is another one's by now. */
  @Override
  public FileSource on(Accelerator other) {
    return new FileSource(file, own, other, options, true);
  }

  @Override
  public String name() {
    return file.name();
  }

  @Override
  public long size() {
    long now = file.size();
    lastSize = now;
    return now;
  }

  /** That of its SSD. Where that is nowhere, by no choice of the user's, the accelerator's. */
  @Override
  public NumaHome home() {
    return disk.node() < 0 && own.numa().equals(NumaOption.AUTO) ? accelerator.home() : disk;
  }

  @Override
  public Map<String, String> homes() {
    String others =
        home().node() == disk.node() ? "" : "; threads on that of " + accelerator.name();
    return Map.of(name(), disk + others);
  }

  /** Without a system call, which would take a large share of a short read's time. */
  @Override
  public long sizeForRead(long end) {
    long known = lastSize;
    return 0 < end && end <= known ? known : size();
  }

  @Override
  public int blockSize() {
    return file.blockSize();
  }

  @Override
  public List<Verdict> verdicts() {
    return List.of(
        Verdict.no(
            PathKind.DIRECT,
            "the kernel drives the SSD of a mounted file system",
            "give the SSD to gpunvme (gpunvme bind) and open it by vfio:"),
        CuFilePath.judge(file.name(), accelerator),
        PinnedPath.judge(file.name(), own.pinned()),
        MmapPath.judge(Path.of(file.name())));
  }

  @Override
  public DataPath open(PathKind kind) {
    return switch (kind) {
      case PINNED -> PinnedPath.open(file, accelerator, own.pinned(), home());
      case MMAP -> MmapPath.open(file, accelerator);
      case CUFILE -> cufile();
      case DIRECT -> throw new IllegalStateException("a file cannot be opened by path " + kind);
    };
  }

  private DataPath cufile() {
    // Without a GPU its verdict is no, and nobody asks.
    GpuAccelerator gpu = accelerator.cuda().orElseThrow();
    return CuFilePath.open(file.name(), options.allowWrite(), gpu, own.cufile(), home());
  }

  @Override
  public double resident(List<Range> ranges) {
    if (!file.residencyKnown()) {
      return 0;
    }
    int step = Math.max(1, ranges.size() / SAMPLES);
    int windows = Math.max(LEAST_WINDOWS, SAMPLES / Math.max(1, ranges.size()));
    double resident = 0;
    long bytes = 0;
    for (int i = 0; i < ranges.size(); i += step) {
      Range r = ranges.get(i);
      if (r.length() > 0) {
        resident += r.length() * file.residency(r.offset(), r.length(), windows);
        bytes += r.length();
      }
    }
    return bytes == 0 ? 0 : resident / bytes;
  }

  /** Pages that are dirty, by whatever path, and the disk's cache. */
  @Override
  public void flush() {
    file.sync();
  }

  @Override
  public void close() {
    if (!borrowed) {
      file.close();
    }
  }
}
