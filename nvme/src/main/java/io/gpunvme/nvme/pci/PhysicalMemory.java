package io.gpunvme.nvme.pci;

import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.LongUnaryOperator;

/**
 * Bus addresses where no IOMMU translates: the physical addresses of locked pages, one for every
 * 4096 bytes, from {@code /proc/self/pagemap}.
 *
 * <p>A locked page is never swapped out, and after {@code fork} it stays with this process. Linux
 * may all the same move it, when it makes room for huge pages ({@code
 * /proc/sys/vm/compact_unevictable_allowed} is 1 unless set otherwise) or takes memory offline. The
 * device would then write into somebody else's memory. Pages from the pool of huge pages are not
 * moved for the first reason.
 */
public final class PhysicalMemory {
  private static final long PRESENT = 1L << 63;
  private static final long FRAME = (1L << 55) - 1;
  private static final long ENTRY = Long.BYTES;

  private final HostPaths paths;

  /** Reads {@code self/pagemap} below {@code paths.proc()}. */
  public PhysicalMemory(HostPaths paths) {
    this.paths = paths;
  }

  /**
   * Locks memory and finds its pages. They stay locked until the memory is freed.
   *
   * @throws DmaMappingException if it is unsuitable, cannot be locked, or its pages are not shown
   */
  public BusRange map(MemorySegment memory) {
    int page = Posix.pageSize();
    DmaChecks.check(memory, page);
    try {
      Posix.mlock(memory);
    } catch (PosixException e) {
      throw new DmaMappingException(
          "%d bytes could not be locked (%s): %s"
              .formatted(memory.byteSize(), e.errnoName(), LockedMemoryLimit.advice(paths)),
          e);
    }
    Posix.madvise(memory, Posix.MADV_DONTFORK);
    return BusRange.scattered(memory, granules(memory, page), () -> {});
  }

  private long[] granules(MemorySegment memory, int page) {
    int pages = Math.toIntExact(memory.byteSize() / page);
    String path = paths.proc().resolve("self/pagemap").toString();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment entries = arena.allocate(pages * ENTRY, ENTRY);
      long from = memory.address() / page * ENTRY;
      int fd = Posix.open(path, Posix.O_RDONLY | Posix.O_CLOEXEC, 0);
      try {
        if (Posix.pread(fd, entries, from) != entries.byteSize()) {
          throw new DmaMappingException(path + " ends before the pages of this memory");
        }
      } finally {
        Posix.close(fd);
      }
      return granules(pages, page, i -> entries.getAtIndex(ValueLayout.JAVA_LONG, i));
    } catch (PosixException e) {
      throw new DmaMappingException("physical addresses: " + e.getMessage(), e);
    }
  }

  /**
   * Physical addresses, one for every {@link BusRange#GRANULE} bytes.
   *
   * @param entries the kernel's word about each page
   */
  static long[] granules(int pages, int page, LongUnaryOperator entries) {
    int perPage = page / BusRange.GRANULE;
    long[] addresses = new long[pages * perPage];
    for (int i = 0; i < pages; i++) {
      long entry = entries.applyAsLong(i);
      long frame = entry & FRAME;
      if ((entry & PRESENT) == 0 || frame == 0) {
        throw new DmaMappingException(
            frame == 0 && (entry & PRESENT) != 0
                ? "the kernel does not show physical addresses to this process; run it as root"
                    + " (CAP_SYS_ADMIN)"
                : "page " + i + " is not in memory although it is locked");
      }
      for (int k = 0; k < perPage; k++) {
        addresses[i * perPage + k] = frame * page + (long) k * BusRange.GRANULE;
      }
    }
    return addresses;
  }
}
