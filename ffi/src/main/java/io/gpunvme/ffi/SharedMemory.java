package io.gpunvme.ffi;

import io.gpunvme.base.CloseAll;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.concurrent.ConcurrentSkipListMap;

/**
 * Page-aligned, zeroed memory with a file descriptor, so that other processes and devices can be
 * given the same pages.
 *
 * <p>Safe for all threads. Mappings made from the descriptor elsewhere outlive {@link #close}; the
 * segment and the descriptor do not: using them afterwards throws {@link IllegalStateException}.
 */
public final class SharedMemory implements AutoCloseable {
  /** Bytes in a page of {@link #allocateHuge}. */
  public static final long HUGE_PAGE = 2L << 20;

  /** All that are open, by address. */
  private static final ConcurrentSkipListMap<Long, SharedMemory> OPEN =
      new ConcurrentSkipListMap<>();

  private final int fd;
  private final Mapping mapping;
  private final long address;
  private final long bytes;
  private boolean closed;

  /**
   * Where memory lies in a descriptor.
   *
   * @param fd valid as long as the memory's owner does not close it
   * @param offset of its first byte
   */
  public record Place(int fd, long offset) {}

  private SharedMemory(int fd, Mapping mapping) {
    this.fd = fd;
    this.mapping = mapping;
    address = mapping.segment().address();
    bytes = mapping.segment().byteSize();
  }

  /**
   * Allocates every page at once: running out of memory is an error here instead of a signal at the
   * first touch, and a device that is given the memory finds it present.
   *
   * @param name for {@code /proc}, at most 249 bytes
   * @param bytes &gt; 0; rounded up to a multiple of {@link Posix#pageSize}
   * @throws PosixException if the system has not that much memory
   */
  public static SharedMemory allocate(String name, long bytes) {
    return allocate(name, bytes, MemoryBudget.here());
  }

  /** As {@link #allocate(String, long)}, if that budget has room. */
  public static SharedMemory allocate(String name, long bytes, MemoryBudget budget) {
    // Until the pages are there: nobody else may be promised them meanwhile.
    try (MemoryBudget.Promise _ = budget.promise(bytes)) {
      return allocate(name, wholePages(bytes, Posix.pageSize()), Posix.MFD_CLOEXEC);
    }
  }

  /**
   * As {@link #allocate(String, long)}, from the system's pool of huge pages: each is physically
   * contiguous, and stays where it is while it is used.
   *
   * @param bytes &gt; 0; rounded up to a multiple of {@link #HUGE_PAGE}
   * @throws PosixException if the pool has not that many, or there is none
   */
  public static SharedMemory allocateHuge(String name, long bytes) {
    int flags = Posix.MFD_CLOEXEC | Posix.MFD_HUGETLB | Posix.MFD_HUGE_2MB;
    return allocate(name, wholePages(bytes, HUGE_PAGE), flags);
  }

  /**
   * Finds the shared memory that all of a segment lies in.
   *
   * @return empty if it is other memory
   */
  public static Optional<Place> find(MemorySegment memory) {
    var below = OPEN.floorEntry(memory.address());
    if (!memory.isNative() || below == null) {
      return Optional.empty();
    }
    SharedMemory found = below.getValue();
    long offset = memory.address() - below.getKey();
    if (offset > found.bytes || memory.byteSize() > found.bytes - offset) {
      return Optional.empty();
    }
    return Optional.of(new Place(found.fd, offset));
  }

  private static long wholePages(long bytes, long page) {
    if (bytes <= 0 || bytes > Long.MAX_VALUE - page) {
      throw new IllegalArgumentException(bytes + " bytes of shared memory");
    }
    return Math.ceilDiv(bytes, page) * page;
  }

  private static SharedMemory allocate(String name, long size, int flags) {
    int fd = Posix.memfdCreate(name, flags | Posix.MFD_ALLOW_SEALING);
    try {
      Posix.ftruncate(fd, size);
      Mapping mapping = Mapping.shared(fd, 0, size, Posix.PROT_READ | Posix.PROT_WRITE);
      try {
        populate(fd, mapping.segment());
        // Another process that is given it must not be able to take its pages away from us.
        Posix.sealSize(fd);
        SharedMemory memory = new SharedMemory(fd, mapping);
        OPEN.put(memory.address, memory);
        return memory;
      } catch (RuntimeException | Error e) {
        CloseAll.after(e, mapping::close);
        throw e;
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> Posix.close(fd));
      throw e;
    }
  }

  private static void populate(int fd, MemorySegment memory) {
    try {
      Posix.madvise(memory, Posix.MADV_POPULATE_WRITE);
    } catch (PosixException e) {
      if (e.errno() != Errno.EINVAL) {
        throw e;
      }
      // Linux before 5.14: the pages are taken now, but mapped when first touched.
      Posix.fallocate(fd, 0, 0, memory.byteSize());
    }
  }

  /** The memory. */
  public MemorySegment segment() {
    return mapping.segment();
  }

  /** Size in bytes, a multiple of the page size. */
  public long size() {
    return mapping.segment().byteSize();
  }

  /** The descriptor, owned by this object: duplicate it to keep it. */
  public synchronized int fd() {
    if (closed) {
      throw new IllegalStateException("shared memory is closed");
    }
    return fd;
  }

  /**
   * Unmaps and closes the descriptor; a second call does nothing.
   *
   * @throws IllegalStateException if a system call is using the memory right now; nothing is
   *     released then, and closing can be tried again
   */
  @Override
  public synchronized void close() {
    if (!closed) {
      // Before the addresses can be somebody else's.
      OPEN.remove(address, this);
      CloseAll steps = new CloseAll();
      steps.run(mapping::close);
      closed = !mapping.segment().scope().isAlive();
      if (closed) {
        steps.run(() -> Posix.close(fd));
      } else {
        OPEN.put(address, this);
      }
      steps.<RuntimeException>end();
    }
  }
}
