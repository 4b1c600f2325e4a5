package io.gpunvme.nvme.pci.kmod;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.host.DeviceFile;
import io.gpunvme.nvme.pci.host.FileConfigSpace;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Configuration space by sysfs. Everybody may read its first 64 bytes; only root may write, and not
 * where the kernel is locked down. The module has switched on what the driver needs, so that others
 * miss one thing only: switching bus mastering off, for which the function is reset instead. Safe
 * for all threads.
 */
final class KmodConfigSpace implements ConfigSpace, AutoCloseable {
  private final DeviceFile file;
  private final FileConfigSpace space;
  private final Runnable stopDma;
  private volatile boolean writable;

  KmodConfigSpace(DeviceFile file, int size, boolean writable, Runnable stopDma) {
    this.file = file;
    this.space = new FileConfigSpace(file, 0, size);
    this.writable = writable;
    this.stopDma = stopDma;
  }

  /**
   * Opens the configuration space of a function.
   *
   * @param folder of the function in sysfs
   * @param stopDma makes the function do no DMA, where its Command register cannot be written
   * @throws PosixException if it cannot be opened at all
   */
  static KmodConfigSpace open(Path folder, Runnable stopDma) throws IOException {
    Path path = folder.resolve("config");
    int size = Math.toIntExact(Files.size(path));
    try {
      return new KmodConfigSpace(DeviceFile.open(path), size, true, stopDma);
    } catch (PosixException e) {
      if (!denied(e)) {
        throw e;
      }
      return new KmodConfigSpace(DeviceFile.open(path, Posix.O_RDONLY), size, false, stopDma);
    }
  }

  private static boolean denied(PosixException e) {
    return e.errno() == Errno.EACCES || e.errno() == Errno.EPERM;
  }

  @Override
  public int size() {
    return space.size();
  }

  @Override
  public int read(int offset, int bytes) {
    return space.read(offset, bytes);
  }

  @Override
  public void write(int offset, int bytes, int value) {
    if (writable) {
      try {
        space.write(offset, bytes, value);
        return;
      } catch (PosixException e) {
        if (!denied(e)) {
          throw e;
        }
        writable = false;
      }
    }
    if (offset != COMMAND || bytes != 2) {
      throw new InvalidRequestException(
          "writing %s at offset %Xh needs root, on a kernel that is not locked down"
              .formatted(file.path(), offset));
    }
    if ((read(COMMAND, 2) & ~value & COMMAND_BUS_MASTER) != 0) {
      stopDma.run();
    }
  }

  @Override
  public void close() {
    file.close();
  }
}
