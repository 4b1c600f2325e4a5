package io.gpunvme.tools.doctor;

import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/** A way to move data: which storage, by which path, who issues the commands, and where to. */
public enum Way {
  EMBEDDED_CPU("sim:", "direct", "cpu", "host"),
  EMBEDDED_GPU_HOST("sim:", "direct", "gpu", "host"),
  EMBEDDED_GPU_VRAM_DATA("sim:", "direct", "gpu", "vram-data"),
  EMBEDDED_GPU_VRAM("sim:", "direct", "gpu", "vram"),
  VFIO_CPU("vfio:", "direct", "cpu", "host"),
  VFIO_GPU_HOST("vfio:", "direct", "gpu", "host"),
  VFIO_GPU_VRAM_DATA("vfio:", "direct", "gpu", "vram-data"),
  VFIO_GPU_VRAM("vfio:", "direct", "gpu", "vram"),
  KMOD_CPU("kmod:", "direct", "cpu", "host"),
  KMOD_GPU_HOST("kmod:", "direct", "gpu", "host"),
  KMOD_GPU_VRAM_DATA("kmod:", "direct", "gpu", "vram-data"),
  KMOD_GPU_VRAM("kmod:", "direct", "gpu", "vram"),
  SYSFS_CPU("sysfs:", "direct", "cpu", "host"),
  SYSFS_GPU_HOST("sysfs:", "direct", "gpu", "host"),
  SYSFS_GPU_VRAM_DATA("sysfs:", "direct", "gpu", "vram-data"),
  SYSFS_GPU_VRAM("sysfs:", "direct", "gpu", "vram"),
  CUFILE("file:", "cufile", "cpu", "vram-data"),
  PINNED("file:", "pinned", "cpu", "vram-data"),
  MMAP("file:", "mmap", "cpu", "vram-data");

  private final String storage;
  private final String path;
  private final String initiator;
  private final String placement;

  Way(String storage, String path, String initiator, String placement) {
    this.storage = storage;
    this.path = path;
    this.initiator = initiator;
    this.placement = placement;
  }

  /** The kind of the storage's address, {@code vfio:}. */
  public String storage() {
    return storage;
  }

  /** The path of the bytes: {@code direct} is by NVMe commands of our own. */
  public String path() {
    return path;
  }

  /** Who issues the commands. */
  public String initiator() {
    return initiator;
  }

  /** Where queues and data lie. */
  public String placement() {
    return placement;
  }

  /** Those of some kinds of storage. */
  static Set<Way> of(String... storages) {
    Set<Way> ways = EnumSet.noneOf(Way.class);
    for (Way way : values()) {
      if (List.of(storages).contains(way.storage)) {
        ways.add(way);
      }
    }
    return ways;
  }

  /** Those in which a GPU issues the commands. */
  static Set<Way> byGpu() {
    Set<Way> ways = EnumSet.noneOf(Way.class);
    for (Way way : values()) {
      if (way.initiator.equals("gpu")) {
        ways.add(way);
      }
    }
    return ways;
  }

  /** The one in which a GPU issues commands to a kind of storage in a placement. */
  static Way byGpu(String storage, String placement) {
    return byGpu().stream()
        .filter(way -> way.storage.equals(storage) && way.placement.equals(placement))
        .findFirst()
        .orElseThrow();
  }

  /** Those that end in GPU memory. */
  static Set<Way> toGpuMemory() {
    Set<Way> ways = EnumSet.noneOf(Way.class);
    for (Way way : values()) {
      if (!way.placement.equals("host")) {
        ways.add(way);
      }
    }
    return ways;
  }

  /** Those in both. */
  static Set<Way> both(Set<Way> a, Set<Way> b) {
    Set<Way> ways = EnumSet.copyOf(a);
    ways.retainAll(b);
    return ways;
  }
}
