package io.gpunvme.core.storage;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.path.DataPath;
import io.gpunvme.core.path.PathKind;
import io.gpunvme.core.path.Range;
import io.gpunvme.core.path.StorageException;
import io.gpunvme.core.path.StorageException.Kind;
import io.gpunvme.core.path.Verdict;
import io.gpunvme.core.path.mmap.MmapPath;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** A file of a mounted file system. */
final class FileSource implements Source {
  private final Path file;
  private final Accelerator accelerator;
  private final StorageOptions options;

  FileSource(Path file, StorageAddress address, Accelerator accelerator, StorageOptions options) {
    this.file = file;
    this.accelerator = accelerator;
    this.options = options;
    if (!address.options().isEmpty()) {
      throw new io.gpunvme.nvme.InvalidRequestException(
          "files have no option '" + address.options().firstEntry().getKey() + "'");
    }
    size();
  }

  @Override
  public String name() {
    return file.toString();
  }

  @Override
  public long size() {
    try {
      return Files.size(file);
    } catch (IOException e) {
      throw new StorageException(Kind.GONE, file.toString(), -1, -1, e.toString(), e);
    }
  }

  @Override
  public List<Verdict> verdicts() {
    return List.of(
        Verdict.no(
            PathKind.DIRECT,
            "the kernel drives the SSD of a mounted file system",
            "give the SSD to gpunvme (gpunvme bind) and open it by vfio:"),
        MmapPath.judge(file));
  }

  @Override
  public DataPath open(PathKind kind) {
    return MmapPath.open(file, options.allowWrite(), accelerator);
  }

  @Override
  public double resident(List<Range> ranges) {
    return 0;
  }

  @Override
  public void close() {}
}
