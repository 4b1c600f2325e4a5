package io.gpunvme.tools.machine;

import java.util.List;

/**
 * A disk, a partition, or what the kernel makes of them (md, dm).
 *
 * @param name as in sysfs, {@code nvme0n1p2}
 * @param number major and minor, {@code 259:2}
 * @param bytes how large
 * @param disk the name of the disk that it is a partition of, empty if it is none
 * @param holders names of the block devices made of it
 * @param kind what it is if it is made of others: {@code raid1}, {@code LVM vg0-root}; else empty
 * @param signature what udev found on it, {@code ext4}, {@code linux_raid_member}; else empty
 */
public record MachineDisk(
    String name,
    String number,
    long bytes,
    String disk,
    List<String> holders,
    String kind,
    String signature) {
  /** Copies the list. */
  public MachineDisk {
    holders = List.copyOf(holders);
  }

  /** Its device node. */
  public String node() {
    return "/dev/" + name;
  }

  /** How it is called among people: {@code md0 (raid1)}. */
  String title() {
    return kind.isEmpty() ? name : name + " (" + kind + ")";
  }
}
