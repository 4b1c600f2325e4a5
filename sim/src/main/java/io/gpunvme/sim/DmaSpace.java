package io.gpunvme.sim;

import io.gpunvme.base.Align;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.RemoteMemory;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The bus as the controller sees it: what the host has mapped, and nothing else. Plays the IOMMU.
 *
 * <p>Bus addresses start high and leave gaps, so that a host which mixes them up with its own
 * pointers, or reaches past the end of a range, is caught. Lookups are lock free and run on the
 * workers; mapping and unmapping by any thread.
 */
final class DmaSpace {
  /** Granularity of mappings, bytes. */
  static final long PAGE = 4096;

  private static final int MAX_GAP_PAGES = 64;
  private static final long MAX_ALIGNMENT = 64 << 10;

  // User space ends below this on the machines we know: such a bus address is never a pointer.
  private static final int POINTER_BITS = 47;
  private static final int MAX_BITS = 62;
  private static final long LOWEST = 1L << 20;
  private static final long NO_POINTER = -1;
  private static final DmaRegion[] NONE = {};

  // Workers are never the thread that made the memory.
  private static final Thread ANOTHER_THREAD = Thread.ofPlatform().unstarted(() -> {});

  private final long low;
  private final long high;
  private final SplittableRandom random;
  private final Consumer<DmaRegion> quiesce;
  private final LongAdder refusals = new LongAdder();
  private long cursor;
  private boolean closed;

  // Sorted by base. Written under the monitor, read by workers: a worker that still sees an old
  // array is in the middle of a pass, for whose end unmap waits.
  private volatile DmaRegion[] regions = NONE;

  // Changes whenever an address may have begun or ceased to be reachable; after the array.
  private volatile int generation;

  private volatile boolean busMaster;

  /**
   * @param addressBits mappings stay below {@code 1 << addressBits}
   * @param quiesce given a region that was unmapped, returns when every pass of a worker that was
   *     running has ended, and every copy to and from the region too
   */
  DmaSpace(int addressBits, long seed, Consumer<DmaRegion> quiesce) {
    low = addressBits > POINTER_BITS ? 1L << POINTER_BITS : LOWEST;
    high = 1L << Math.min(addressBits, MAX_BITS);
    random = new SplittableRandom(seed);
    cursor = low + (random.nextLong((high - low) / 2) & -PAGE);
    this.quiesce = quiesce;
  }

  /**
   * Maps memory at an address of our choice.
   *
   * @throws DmaMappingException if it cannot be reached by the workers or no room is left
   */
  BusRange map(MemorySegment memory) {
    check(memory);
    synchronized (this) {
      checkOpen();
      // Memory that suits large pages keeps doing so on the bus.
      long alignment = Math.min(Long.lowestOneBit(memory.address()), MAX_ALIGNMENT);
      long base = findRoom(memory.byteSize(), alignment, memory.address());
      DmaRegion region = new DmaRegion(base, memory.byteSize(), memory, false);
      insert(region);
      return BusRange.contiguous(memory, base, () -> unmap(region));
    }
  }

  /**
   * Maps remote memory at an address of our choice.
   *
   * @throws DmaMappingException if its size is not a multiple of a page or no room is left
   */
  BusRange map(RemoteMemory memory) {
    long bytes = memory.size();
    if (bytes <= 0 || bytes % PAGE != 0) {
      throw new DmaMappingException(
          "size %d of %s is not a multiple of %d".formatted(bytes, memory.name(), PAGE));
    }
    memory.prepare();
    synchronized (this) {
      checkOpen();
      DmaRegion region = new DmaRegion(findRoom(bytes, MAX_ALIGNMENT, NO_POINTER), memory);
      insert(region);
      return BusRange.remote(bytes, region.base(), () -> unmap(region));
    }
  }

  /**
   * Maps a region at an address of the host's choice, a multiple of a page.
   *
   * @throws DmaMappingException if something is mapped there, or the controller has not that many
   *     address bits
   */
  synchronized Runnable mapAt(DmaRegion region) {
    checkOpen();
    if (((region.base() | region.size()) & (PAGE - 1)) != 0 || region.size() <= 0) {
      throw new DmaMappingException(
          "address %Xh and size %d of the memory to map are not multiples of %d"
              .formatted(region.base(), region.size(), PAGE));
    }
    if (!place(region)) {
      throw new DmaMappingException(
          "%d bytes cannot be mapped at %Xh: something is there, or it is past the %Xh of this bus"
              .formatted(region.size(), region.base(), high));
    }
    return () -> unmap(region);
  }

  private void checkOpen() {
    if (closed) {
      throw new DmaMappingException("the controller is closed; nothing can be mapped any more");
    }
  }

  private void check(MemorySegment memory) {
    if (!memory.isNative() || memory.isReadOnly()) {
      throw new DmaMappingException("only writable native memory can be mapped");
    }
    long bytes = memory.byteSize();
    if (bytes == 0 || (bytes | memory.address()) % PAGE != 0) {
      throw new DmaMappingException(
          "address %Xh and size %d of the memory to map are not multiples of %d"
              .formatted(memory.address(), bytes, PAGE));
    }
    if (!memory.isAccessibleBy(ANOTHER_THREAD)) {
      throw new DmaMappingException("the memory is confined to one thread; map shared memory");
    }
  }

  /**
   * A free run of bus addresses.
   *
   * @param pointer what its first address must not be
   */
  private long findRoom(long bytes, long alignment, long pointer) {
    long gap = PAGE * (1 + random.nextInt(MAX_GAP_PAGES));
    long found = firstFit(cursor, gap, bytes, alignment, pointer);
    if (found < 0) {
      found = firstFit(low, gap, bytes, alignment, pointer);
    }
    if (found < 0) {
      found = firstFit(low, PAGE, bytes, alignment, pointer);
    }
    if (found < 0) {
      throw new DmaMappingException(
          "no room for %d bytes in bus addresses below %Xh".formatted(bytes, high));
    }
    cursor = found + bytes;
    return found;
  }

  /** The first free address from {@code from} on, or -1. */
  private long firstFit(long from, long gap, long bytes, long alignment, long pointer) {
    long candidate = Align.up(from + gap, alignment);
    while (bytes <= high - candidate) {
      // A page of distance on either side, so that running over the end is always noticed.
      DmaRegion other = overlapping(candidate - PAGE, bytes + 2 * PAGE);
      if (other != null) {
        candidate = Align.up(other.base() + other.size() + gap, alignment);
      } else if (candidate == pointer) {
        candidate += alignment;
      } else {
        return candidate;
      }
    }
    return -1;
  }

  /** Puts the controller's own memory at an address of the host's choice; false if it is taken. */
  synchronized boolean place(DmaRegion region) {
    if (region.base() < 0
        || region.size() > high - region.base()
        || overlapping(region.base(), region.size()) != null) {
      return false;
    }
    insert(region);
    return true;
  }

  /** Unmaps; when this returns, nothing touches the memory any more. */
  void unmap(DmaRegion region) {
    synchronized (this) {
      DmaRegion[] next = Arrays.stream(regions).filter(r -> r != region).toArray(DmaRegion[]::new);
      if (next.length == regions.length) {
        return;
      }
      publish(next);
    }
    quiesce.accept(region);
  }

  /** Unmaps everything and maps nothing any more. The workers have stopped. */
  synchronized void close() {
    closed = true;
    publish(NONE);
  }

  private void insert(DmaRegion region) {
    DmaRegion[] old = regions;
    int at = floor(old, region.base()) + 1;
    DmaRegion[] next = new DmaRegion[old.length + 1];
    System.arraycopy(old, 0, next, 0, at);
    next[at] = region;
    System.arraycopy(old, at, next, at + 1, old.length - at);
    publish(next);
  }

  @SuppressWarnings("NonAtomicVolatileUpdate") // only ever changed with the monitor held
  private void publish(DmaRegion[] next) {
    regions = next;
    generation++;
  }

  private @Nullable DmaRegion overlapping(long from, long bytes) {
    for (DmaRegion r : regions) {
      if (r.base() < from + bytes && from < r.base() + r.size()) {
        return r;
      }
    }
    return null;
  }

  /** Index of the last region that starts at or below {@code address}, or -1. */
  private static int floor(DmaRegion[] all, long address) {
    int below = -1;
    int above = all.length;
    while (above - below > 1) {
      int middle = (below + above) >>> 1;
      if (Long.compareUnsigned(all[middle].base(), address) <= 0) {
        below = middle;
      } else {
        above = middle;
      }
    }
    return below;
  }

  /**
   * The region that contains all of {@code length} bytes at a bus address, or null (and a refusal
   * is counted): not mapped for this, or the function is not a bus master. To be used within the
   * worker's pass.
   *
   * @param length above 0
   */
  @Nullable DmaRegion find(long address, long length, DmaAccess wanted) {
    DmaRegion[] all = regions;
    int i = floor(all, address);
    if (i >= 0) {
      DmaRegion r = all[i];
      boolean may = (busMaster || r.internal()) && r.access().allows(wanted);
      if (may && r.contains(address, length)) {
        return r;
      }
    }
    refusals.increment();
    return null;
  }

  /** As above, for memory that is read and written. */
  @Nullable DmaRegion find(long address, long length) {
    return find(address, length, DmaAccess.READ_WRITE);
  }

  /** As {@link #find}, for what the controller touches itself: remote memory is refused. */
  @Nullable DmaRegion findHost(long address, long length) {
    DmaRegion r = find(address, length);
    if (r != null && r.isRemote()) {
      refusals.increment();
      return null;
    }
    return r;
  }

  /** Whether a region is still mapped and the function a bus master. */
  boolean isReachable(DmaRegion region) {
    return busMaster && isMapped(region);
  }

  /** Whether a region is still mapped. */
  boolean isMapped(DmaRegion region) {
    DmaRegion[] all = regions;
    int i = floor(all, region.base());
    return i >= 0 && all[i] == region;
  }

  /** A region found earlier may be used as long as this has not changed. */
  int generation() {
    return generation;
  }

  /** The Bus Master Enable bit of the Command register changed. */
  synchronized void busMaster(boolean enabled) {
    if (busMaster != enabled) {
      busMaster = enabled;
      generation++;
    }
  }

  /** How many accesses were refused. */
  long refusals() {
    return refusals.sum();
  }

  /** How many ranges are mapped. */
  int regionCount() {
    return regions.length;
  }
}
