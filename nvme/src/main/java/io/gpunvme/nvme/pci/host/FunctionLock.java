package io.gpunvme.nvme.pci.host;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import java.nio.file.Path;
import java.util.List;

/**
 * Keeps two processes off one controller: a lock on {@code /run/lock/gpunvme-0000:01:00.0.lock},
 * which ends with the process if it is not closed. The file stays behind; that does no harm.
 */
public final class FunctionLock implements AutoCloseable {
  private static final int EVERYBODY = 0444;

  private final Path path;
  private final DeviceFile file;

  private FunctionLock(Path path, DeviceFile file) {
    this.path = path;
    this.file = file;
  }

  /**
   * Takes the lock of a function.
   *
   * @throws InvalidRequestException if somebody else has it, or no lock file can be made
   */
  public static FunctionLock take(HostPaths paths, PciAddress address) {
    String name = "gpunvme-" + address + ".lock";
    Path run = paths.sys().resolveSibling("run").resolve("lock").resolve(name);
    Path temporary = paths.sys().resolveSibling("tmp").resolve(name);
    PosixException failure = null;
    for (Path path : List.of(run, temporary)) {
      try {
        return take(path, address);
      } catch (PosixException e) {
        failure = failure == null ? e : failure;
      }
    }
    throw new InvalidRequestException(
        "no lock file for %s could be made in %s or %s: %s"
            .formatted(
                address,
                run.getParent(),
                temporary.getParent(),
                failure == null ? "" : failure.getMessage()));
  }

  private static FunctionLock take(Path path, PciAddress address) {
    DeviceFile file = openOrCreate(path);
    try {
      if (!Posix.tryLock(file.fd(), true)) {
        throw new InvalidRequestException(
            address
                + " is in use by another gpunvme, which holds "
                + path
                + "; end it first (fuser "
                + path
                + " names it)");
      }
      return new FunctionLock(path, file);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, file::close);
      throw e;
    }
  }

  /**
   * Locks need no write access, so that every user finds the file of every other. Opening to create
   * comes second: in a sticky folder the kernel refuses that for a file of somebody else.
   */
  private static DeviceFile openOrCreate(Path path) {
    int flags = Posix.O_RDONLY | Posix.O_CLOEXEC;
    try {
      return new DeviceFile(path.toString(), Posix.open(path.toString(), flags, 0));
    } catch (PosixException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
    }
    try {
      int fd = Posix.open(path.toString(), flags | Posix.O_CREAT | Posix.O_EXCL, EVERYBODY);
      return new DeviceFile(path.toString(), fd);
    } catch (PosixException e) {
      if (e.errno() != Errno.EEXIST) {
        throw e;
      }
      return new DeviceFile(path.toString(), Posix.open(path.toString(), flags, 0));
    }
  }

  /** The lock file. */
  public Path path() {
    return path;
  }

  /** Gives the lock back. Idempotent. */
  @Override
  public void close() {
    file.close();
  }
}
