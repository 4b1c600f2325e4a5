package io.gpunvme.sim;

import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * The memory of one queue: a run of bus addresses, or pages named by a PRP list (Base 2.0, 3.3.1).
 * Guarded by the worker's lock.
 *
 * <p>The host may unmap it at any time. So before each access {@link #ready} must be asked; it
 * looks again only when something was mapped or unmapped since.
 *
 * <p>Remote memory is reached through one channel. A queue that begins in remote memory must lie in
 * one region of it, and that must stay mapped as long as the queue exists.
 */
final class RingMemory {
  private static final int WHOLE_RING = Long.SIZE - 2;

  private final DmaSpace dma;
  private final long bytes;
  private final int entryBytes;
  private final DmaAccess access;
  private final int shift;
  private final long[] addresses;
  private final @Nullable DmaRegion[] regions;
  private @Nullable DmaRegion home;
  private boolean created;
  private int generation;
  private boolean accessible;

  private RingMemory(DmaSpace dma, long bytes, int entryBytes, int shift, long[] addresses) {
    this.dma = dma;
    this.bytes = bytes;
    this.entryBytes = entryBytes;
    access = entryBytes == Cqe.SIZE ? DmaAccess.WRITE : DmaAccess.READ;
    this.shift = shift;
    this.addresses = addresses;
    regions = new DmaRegion[addresses.length];
    resolve(dma.generation());
    created = true;
  }

  /** A queue in one run of bus addresses. */
  static RingMemory contiguous(DmaSpace dma, long base, int entries, int entryBytes) {
    return new RingMemory(
        dma, (long) entries * entryBytes, entryBytes, WHOLE_RING, new long[] {base});
  }

  /**
   * A queue in pages that need not follow each other.
   *
   * @param window for a list in remote memory
   * @param list bus address of the PRP list; read now
   * @param pageBytes CC.MPS in bytes
   * @param status status[0] becomes what is wrong with the list, 0 for nothing
   * @return null if the status is not 0
   */
  static @Nullable RingMemory paged(
      DmaSpace dma,
      RemoteWindow window,
      long list,
      int entries,
      int entryBytes,
      long pageBytes,
      int[] status) {
    long bytes = (long) entries * entryBytes;
    long[] pages = new long[(int) Math.ceilDiv(bytes, pageBytes)];
    PrpCursor cursor = new PrpCursor(dma, window);
    status[0] = cursor.start(list, pageBytes);
    for (int i = 0; i < pages.length && status[0] == 0; i++) {
      pages[i] = cursor.next(i == pages.length - 1);
      if (pages[i] == PrpCursor.NO_ENTRY) {
        status[0] = cursor.status();
      }
    }
    int shift = Long.numberOfTrailingZeros(pageBytes);
    return status[0] != 0 ? null : new RingMemory(dma, bytes, entryBytes, shift, pages);
  }

  /** Status of creating a queue here: Data Transfer Error if it is not all mapped. */
  int status() {
    return ready() ? 0 : StatusCode.DATA_TRANSFER_ERROR.status();
  }

  /** Whether the entries may be touched until the pass ends. */
  boolean ready() {
    int current = dma.generation();
    return current == generation ? accessible : resolve(current);
  }

  private boolean resolve(int current) {
    generation = current;
    accessible = true;
    long left = bytes;
    long page = Math.min(bytes, 1L << shift);
    for (int i = 0; i < addresses.length && accessible; i++) {
      DmaRegion r = dma.find(addresses[i], Math.min(left, page), access);
      if (i == 0 && !created && r != null && r.isRemote()) {
        home = r;
      }
      accessible = r != null && (home == null ? !r.isRemote() : home == r);
      regions[i] = r;
      left -= page;
    }
    return accessible;
  }

  /** The region of remote memory all entries lie in; null if they lie in host memory. */
  @Nullable DmaRegion remote() {
    return home;
  }

  /** How many entries from {@code index} on follow each other in memory, at most {@code limit}. */
  int run(int index, int limit) {
    long at = (long) index * entryBytes;
    long rest = Math.min(bytes - at, (1L << shift) - (at & (1L << shift) - 1));
    return (int) Math.min(limit, rest / entryBytes);
  }

  /** The memory entry {@code index} lies in; only after {@link #ready} said yes. */
  MemorySegment segment(int index) {
    return region(page(index)).memory();
  }

  /** Where entry {@code index} starts in its {@link #segment}. */
  long offset(int index) {
    long at = (long) index * entryBytes;
    int page = page(index);
    return region(page).offset(addresses[page]) + (at & (1L << shift) - 1);
  }

  private int page(int index) {
    return (int) ((long) index * entryBytes >>> shift);
  }

  private DmaRegion region(int page) {
    DmaRegion r = regions[page];
    if (r == null) {
      throw new IllegalStateException("queue memory used without asking whether it is mapped");
    }
    return r;
  }
}
