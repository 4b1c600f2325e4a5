package io.gpunvme.cuda.cufile;

import java.util.List;

/**
 * What cuFile has done in this process since its statistics began, for all users of the library. It
 * counts at the level set; what belongs to a higher one is 0 or empty.
 *
 * @param reads calls that read; level 1
 * @param writes calls that wrote
 * @param handles files registered and deregistered
 * @param buffers buffers registered and deregistered
 * @param batches what batches did
 * @param readSizes number of reads by size, in 32 classes; level 2, else empty
 * @param writeSizes number of writes by size
 * @param gpus by GPU, where the way that bytes took shows; level 3, else empty
 */
public record CuFileStatistics(
    Calls reads,
    Calls writes,
    Lifetimes handles,
    Lifetimes buffers,
    Batches batches,
    List<Long> readSizes,
    List<Long> writeSizes,
    List<Gpu> gpus) {
  /** Copies the lists. */
  public CuFileStatistics {
    readSizes = List.copyOf(readSizes);
    writeSizes = List.copyOf(writeSizes);
    gpus = List.copyOf(gpus);
  }

  /**
   * Calls one way.
   *
   * @param ok that worked
   * @param failed that did not
   * @param bytes moved
   * @param meanMicros how long one took
   */
  public record Calls(long ok, long failed, long bytes, long meanMicros) {}

  /**
   * Registered objects of one kind.
   *
   * @param registered how often
   * @param registerFailed how often in vain
   * @param deregistered how often
   * @param deregisterFailed how often in vain
   */
  public record Lifetimes(
      long registered, long registerFailed, long deregistered, long deregisterFailed) {}

  /**
   * Batches.
   *
   * @param submitted calls that submitted one
   * @param submitFailed in vain
   * @param enqueued entries
   * @param posixEnqueued entries that went through host memory
   * @param byNvfs submissions to nvidia-fs
   * @param byP2p submissions by PCI P2PDMA
   * @param byAio submissions to the kernel's AIO
   * @param byIoUring submissions to io_uring
   */
  public record Batches(
      long submitted,
      long submitFailed,
      long enqueued,
      long posixEnqueued,
      long byNvfs,
      long byP2p,
      long byAio,
      long byIoUring) {}

  /**
   * One GPU.
   *
   * @param uuid 16 bytes in hexadecimal
   * @param reads by the way they took
   * @param writes by the way they took
   * @param registrations of its memory
   * @param registeredBytes in them
   */
  public record Gpu(
      String uuid, Routes reads, Routes writes, long registrations, long registeredBytes) {}

  /**
   * How transfers of one GPU went.
   *
   * @param bytes moved
   * @param total transfers
   * @param p2p directly, by PCI P2PDMA
   * @param nvfs directly, by nvidia-fs
   * @param posix through host memory: compatibility mode
   * @param unaligned not aligned
   * @param routed by way of another GPU's memory
   * @param failed in vain
   */
  public record Routes(
      long bytes,
      long total,
      long p2p,
      long nvfs,
      long posix,
      long unaligned,
      long routed,
      long failed) {
    /** Nothing. */
    public static final Routes NONE = new Routes(0, 0, 0, 0, 0, 0, 0, 0);

    Routes plus(Routes o) {
      return new Routes(
          bytes + o.bytes,
          total + o.total,
          p2p + o.p2p,
          nvfs + o.nvfs,
          posix + o.posix,
          unaligned + o.unaligned,
          routed + o.routed,
          failed + o.failed);
    }

    /** What came after {@code earlier}. */
    public Routes minus(Routes earlier) {
      return new Routes(
          bytes - earlier.bytes,
          total - earlier.total,
          p2p - earlier.p2p,
          nvfs - earlier.nvfs,
          posix - earlier.posix,
          unaligned - earlier.unaligned,
          routed - earlier.routed,
          failed - earlier.failed);
    }
  }

  /** Reads and writes of all GPUs. */
  public Routes allRoutes() {
    return gpus.stream()
        .map(gpu -> gpu.reads().plus(gpu.writes()))
        .reduce(Routes.NONE, Routes::plus);
  }
}
