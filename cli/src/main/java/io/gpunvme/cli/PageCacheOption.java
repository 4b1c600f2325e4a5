package io.gpunvme.cli;

import io.gpunvme.gpu.queue.Placement;
import picocli.CommandLine.Option;

/** The options of all commands whose kernels read through a page cache, but its size. */
final class PageCacheOption {
  @Option(
      names = "--page",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "Bytes of a page, a power of two from 512B to 64KiB (4KiB).")
  private long page = 4096;

  @Option(
      names = "--placement",
      paramLabel = "WHERE",
      converter = Converters.Where.class,
      description =
          "Place of queues and cache: host, vram-data (cache in GPU memory), or vram (both)"
              + " (host).")
  private Placement placement = Placement.HOST;

  @Option(
      names = "--queues",
      paramLabel = "N",
      converter = Converters.Count.class,
      description = "I/O queue pairs of each SSD (chosen).")
  private int queues;

  @Option(
      names = "--depth",
      paramLabel = "N",
      converter = Converters.Count.class,
      description = "Commands in flight per queue pair, a multiple of 32 (chosen).")
  private int depth;

  /** Bytes of a page, unchecked. */
  int page() {
    return (int) Math.min(page, Integer.MAX_VALUE);
  }

  Placement placement() {
    return placement;
  }

  /** 0: chosen. */
  int queues() {
    return queues;
  }

  /** 0: chosen. */
  int depth() {
    return depth;
  }
}
