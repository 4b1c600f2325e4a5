package io.gpunvme.storage.path.file;

import io.gpunvme.ffi.SysFiles;
import io.gpunvme.nvme.pci.HostPaths;
import java.nio.file.Path;
import java.util.Optional;

/**
 * A mounted file system.
 *
 * @param number major and minor of its device; an invented one for btrfs and the like
 * @param source what was mounted, often a device node
 * @param target where
 * @param type of the file system
 */
public record MountPoint(String number, String source, String target, String type) {
  /**
   * What a file lies in, as this process sees it.
   *
   * @param file existing
   * @return empty if the kernel does not show it
   */
  public static Optional<MountPoint> of(HostPaths paths, Path file) {
    Path real = SysFiles.real(file);
    MountPoint found = null;
    for (MountPoint mount : MountScan.own(paths)) {
      // Of two at one place the later one covers the other.
      boolean deeper = found == null || mount.target.length() >= found.target.length();
      if (deeper && real.startsWith(mount.target)) {
        found = mount;
      }
    }
    return Optional.ofNullable(found);
  }
}
