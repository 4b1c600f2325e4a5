package io.gpunvme.storage.path.file;

import java.util.Locale;
import java.util.Map;
import java.util.Set;

/** Names of file systems by the numbers of statfs(2). */
final class FileSystemKind {
  private static final Map<Long, String> NAMES =
      Map.ofEntries(
          Map.entry(0xEF53L, "ext4"),
          Map.entry(0x58465342L, "xfs"),
          Map.entry(0x9123683EL, "btrfs"),
          Map.entry(0x2FC12FC1L, "zfs"),
          Map.entry(0xF2F52010L, "f2fs"),
          Map.entry(0xCA451A4EL, "bcachefs"),
          Map.entry(0x01021994L, "tmpfs"),
          Map.entry(0x858458F6L, "ramfs"),
          Map.entry(0x958458F6L, "hugetlbfs"),
          Map.entry(0x794C7630L, "overlayfs"),
          Map.entry(0x73717368L, "squashfs"),
          Map.entry(0xE0F5E1E2L, "erofs"),
          Map.entry(0x4D44L, "vfat"),
          Map.entry(0x2011BAB0L, "exfat"),
          Map.entry(0x65735546L, "fuse"),
          Map.entry(0x6969L, "nfs"),
          Map.entry(0xFF534D42L, "cifs"),
          Map.entry(0xFE534D42L, "smb2"),
          Map.entry(0x01021997L, "9p"),
          Map.entry(0x00C36400L, "ceph"),
          Map.entry(0x0BD00BD0L, "lustre"),
          Map.entry(0x19830326L, "beegfs"),
          Map.entry(0x47504653L, "gpfs"),
          Map.entry(0x9FA0L, "proc"),
          Map.entry(0x62656572L, "sysfs"));

  private static final Set<String> IN_MEMORY = Set.of("tmpfs", "ramfs", "hugetlbfs");

  private FileSystemKind() {}

  /** Whether files of it have no other place than memory. */
  static boolean inMemory(String name) {
    return IN_MEMORY.contains(name);
  }

  /** ext2 and ext3 share ext4's number and code, and its name here. */
  static String name(long number) {
    String name = NAMES.get(number & 0xFFFF_FFFFL);
    return name != null
        ? name
        : "file system " + Long.toHexString(number).toUpperCase(Locale.ROOT) + "h";
  }
}
