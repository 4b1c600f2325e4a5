package io.gpunvme.storage.path.file;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.gpunvme.base.CloseAll;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;

/**
 * Which pages of a file the page cache holds, asked of the kernel by a mapping of the file that
 * nobody touches. It is made when first needed and again when the file has grown. Safe for all
 * threads.
 */
final class Residency implements AutoCloseable {
  /**
   * Bytes of a window, in which every page is looked at. The kernel looks each one up: 32 ms for 1
   * GiB were seen, longer than reading that much from the cache by several threads takes.
   */
  static final long WINDOW = 64L << 10;

  private static final ThreadLocal<MemorySegment> FLAG =
      ThreadLocal.withInitial(() -> Arena.ofAuto().allocate(1));

  private final int fd;
  private final LongSupplier size;
  private final long page = Posix.pageSize();

  /** The last covers most; the others are kept since somebody may be using them. */
  private final List<Mapping> mappings = new ArrayList<>();

  private boolean closed;

  /**
   * @param size of the file now
   */
  Residency(int fd, LongSupplier size) {
    this.fd = fd;
    this.size = size;
  }

  /**
   * Share of the pages from {@code from} to {@code to} that are resident; none past the file's end.
   *
   * @param windows of a longer range these many are looked at, from its start to its end; at least
   *     2
   */
  double share(long from, long to, int windows) {
    long start = from - from % page;
    MemorySegment file = covering(to);
    long bytes = to - start;
    Count count = new Count();
    if (bytes <= windows * WINDOW) {
      add(file, start, bytes, count);
    } else {
      long last = (bytes - WINDOW) / page * page;
      for (int i = 0; i < windows; i++) {
        long at = (long) ((double) last * i / (windows - 1));
        add(file, start + at - at % page, WINDOW, count);
      }
    }
    return (double) count.resident / count.pages;
  }

  /** Whether the page with this byte is resident. */
  boolean isResident(long place) {
    MemorySegment flag = FLAG.get();
    Posix.mincore(covering(place + 1).asSlice(place - place % page, page), flag);
    return (flag.get(JAVA_BYTE, 0) & 1) != 0;
  }

  private static final class Count {
    private long pages;
    private long resident;
  }

  private void add(MemorySegment file, long start, long bytes, Count count) {
    int pages = Math.toIntExact(Math.ceilDiv(bytes, page));
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment flags = arena.allocate(pages);
      Posix.mincore(file.asSlice(start, bytes), flags);
      count.pages += pages;
      for (int i = 0; i < pages; i++) {
        count.resident += flags.get(JAVA_BYTE, i) & 1;
      }
    }
  }

  private synchronized MemorySegment covering(long end) {
    if (closed) {
      throw new IllegalStateException("this file is closed");
    }
    if (mappings.isEmpty() || mappings.getLast().segment().byteSize() < end) {
      long bytes = Math.ceilDiv(Math.max(end, size.getAsLong()), page) * page;
      mappings.add(Mapping.shared(fd, 0, bytes, Posix.PROT_NONE));
    }
    return mappings.getLast().segment();
  }

  @Override
  public synchronized void close() {
    closed = true;
    CloseAll.newestFirst(mappings);
  }
}
