package io.gpunvme.nvme.pci.host;

import io.gpunvme.base.CloseAll;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PagePin;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.PeerMemory;
import io.gpunvme.nvme.pci.DmaChecks;
import io.gpunvme.nvme.pci.HostPaths;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.LongUnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Bus addresses where no IOMMU translates: the physical addresses of pinned pages, one for every
 * 4096 bytes, from {@code /proc/self/pagemap}. Safe for all threads.
 *
 * <p>Pages are pinned as for a device's DMA, so that the kernel does not move them. Where it does
 * not let us (io_uring switched off), they are only locked: never swapped out, but Linux may move
 * them when it makes room for huge pages or balances NUMA nodes, and the device would then write
 * into somebody else's memory. A warning says so.
 */
public final class PhysicalMemory implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger("io.gpunvme.nvme.pci");
  private static final long PRESENT = 1L << 63;
  private static final long FRAME = (1L << 55) - 1;
  private static final long ENTRY = Long.BYTES;

  private final HostPaths paths;
  private final Set<PagePin> pins = new HashSet<>();
  private boolean warned;
  private boolean closed;

  /** Reads {@code self/pagemap} below {@code paths.proc()}. */
  public PhysicalMemory(HostPaths paths) {
    this.paths = paths;
  }

  /**
   * Pins memory and finds its pages. It also stays locked until it is freed, and is not inherited
   * by processes that are forked.
   *
   * @throws DmaMappingException if it is unsuitable, cannot be locked, or its pages are not shown
   */
  public synchronized BusRange map(MemorySegment memory) {
    if (closed) {
      throw new DmaMappingException("the device is closed; nothing can be mapped any more");
    }
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
    keepFromChildren(memory);
    PagePin pin = pin(memory);
    try {
      // Pinning may have moved pages one last time: their addresses count from now on.
      return BusRange.scattered(memory, granules(memory, page), () -> release(pin));
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> release(pin));
      throw e;
    }
  }

  /**
   * The bus addresses of another function's memory: the physical ones of its BAR. They are the same
   * on x86, where host bridges change no address; elsewhere that is not known, and refused.
   *
   * @throws DmaMappingException if it is unsuitable, or this is another machine
   */
  public static BusRange peer(List<PeerMemory> parts) {
    String machine = System.getProperty("os.arch", "");
    if (!machine.equals("amd64") && !machine.equals("x86_64")) {
      throw new DmaMappingException(
          "memory behind another function's BAR without an IOMMU: on "
              + machine
              + " its bus addresses may not be its physical ones; use an IOMMU and vfio:");
    }
    DmaChecks.check(parts, BusRange.GRANULE);
    long size = parts.stream().mapToLong(PeerMemory::size).sum();
    long[] granules = new long[Math.toIntExact(size / BusRange.GRANULE)];
    int at = 0;
    for (PeerMemory part : parts) {
      for (long offset = 0; offset < part.size(); offset += BusRange.GRANULE) {
        granules[at++] = part.physical() + offset;
      }
    }
    return BusRange.remote(size, granules, () -> {});
  }

  /** A child that writes to a page may be left with it, and this process with a copy. */
  private static void keepFromChildren(MemorySegment memory) {
    try {
      Posix.madvise(memory, Posix.MADV_DONTFORK);
    } catch (PosixException e) {
      // The kernel advises on whole huge pages only. Pieces of them are shared memory, of which
      // nobody is left with a copy.
      if (e.errno() != Errno.EINVAL) {
        throw e;
      }
    }
  }

  private @Nullable PagePin pin(MemorySegment memory) {
    try {
      PagePin pin = PagePin.pin(memory);
      pins.add(pin);
      return pin;
    } catch (PosixException e) {
      if (!warned) {
        warned = true;
        LOG.log(
            System.Logger.Level.WARNING,
            "pages are locked but not pinned ({0}): Linux may move them under the device. Set"
                + " vm.compact_unevictable_allowed=0 and kernel.numa_balancing=0, use huge pages,"
                + " or allow io_uring (kernel.io_uring_disabled=0)",
            e.getMessage());
      }
      withoutHugePages(memory);
      return null;
    }
  }

  /** Nobody then collects its pages into a huge one elsewhere. */
  private static void withoutHugePages(MemorySegment memory) {
    try {
      Posix.madvise(memory, Posix.MADV_NOHUGEPAGE);
    } catch (PosixException e) {
      // Already of the pool of huge pages, or the kernel has no transparent ones.
    }
  }

  private synchronized void release(@Nullable PagePin pin) {
    if (pin != null && pins.remove(pin)) {
      pin.close();
    }
  }

  /** Lets all pages go; the device does no DMA any more. Idempotent. */
  @Override
  public synchronized void close() {
    closed = true;
    pins.forEach(PagePin::close);
    pins.clear();
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
