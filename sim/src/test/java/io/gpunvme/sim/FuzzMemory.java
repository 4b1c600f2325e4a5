package io.gpunvme.sim;

import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.DmaBuffer;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Deque;
import java.util.List;
import java.util.SplittableRandom;

/**
 * The host's memory in a fuzz test. Each region lies between two guard pages that are never mapped,
 * and has a copy of what the host believes is in it, so that every write by the controller is
 * noticed.
 */
final class FuzzMemory implements AutoCloseable {
  static final int PAGE = 4096;
  private static final byte CANARY = (byte) 0xC5;
  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;

  /** What a region is for. */
  enum Use {
    /** Queue entries: the controller writes completions and nothing else. */
    RING,
    /** Data and lists: what commands name. */
    DATA
  }

  /** A mapped run of pages. */
  static final class Region {
    final String name;
    final Use use;
    final DmaBuffer buffer;
    final MemorySegment memory;
    final long base;
    private final MemorySegment whole;
    private final MemorySegment believed;
    private boolean mapped = true;

    Region(String name, Use use, int pages, BusMapper mapper) {
      this.name = name;
      this.use = use;
      MemorySegment[] all = new MemorySegment[1];
      buffer =
          DmaBuffer.allocate(
              m -> {
                all[0] = m.fill(CANARY);
                return mapper.map(m.asSlice(PAGE, m.byteSize() - 2 * PAGE));
              },
              (pages + 2L) * PAGE);
      whole = all[0];
      memory = buffer.memory().fill((byte) 0);
      base = buffer.busAddress(0);
      believed = MemorySegment.ofArray(new byte[pages * PAGE]);
    }

    int pages() {
      return (int) (memory.byteSize() / PAGE);
    }

    boolean isMapped() {
      return mapped;
    }

    /** Takes it away from the controller; the memory stays, to see that it is left alone. */
    void unmap() {
      mapped = false;
      buffer.range().close();
    }

    boolean contains(long address) {
      return Long.compareUnsigned(address - base, memory.byteSize()) < 0;
    }

    /** The host knows what is in it now. */
    void believe() {
      believed.copyFrom(memory);
    }

    /** The host knows what is in this part now. */
    void believe(long offset, long bytes) {
      MemorySegment.copy(memory, offset, believed, offset, bytes);
    }

    boolean isAsBelieved() {
      return memory.mismatch(believed) < 0;
    }

    private boolean isAsBelieved(int page) {
      long from = (long) page * PAGE;
      return MemorySegment.mismatch(memory, from, from + PAGE, believed, from, from + PAGE) < 0;
    }

    private void requireGuards() {
      long end = whole.byteSize();
      for (long from : new long[] {0, end - PAGE}) {
        if (MemorySegment.mismatch(whole, from, from + PAGE, GUARD, 0, PAGE) >= 0) {
          throw new AssertionError("the guard page beside " + name + " was written");
        }
      }
    }
  }

  private static final MemorySegment GUARD = MemorySegment.ofArray(new byte[PAGE]).fill(CANARY);

  private final BusMapper host;
  private final BusMapper gpu;
  private final SplittableRandom random;
  private final int remoteShare;
  private final List<Region> regions = new ArrayList<>();
  private long lowest;
  private long highest;

  /**
   * @param host maps host memory
   * @param gpu maps remote memory
   * @param remoteShare how many of 100 regions are remote
   */
  FuzzMemory(BusMapper host, BusMapper gpu, SplittableRandom random, int remoteShare) {
    this.host = host;
    this.gpu = gpu;
    this.random = random;
    this.remoteShare = remoteShare;
  }

  private BusMapper mapper() {
    return random.nextInt(100) < remoteShare ? gpu : host;
  }

  Region add(String name, Use use, int pages) {
    Region region = new Region(name, use, pages, mapper());
    regions.add(region);
    measure();
    return region;
  }

  private void measure() {
    lowest = regions.stream().mapToLong(r -> r.base).min().orElse(0);
    highest = regions.stream().mapToLong(r -> r.base + r.memory.byteSize()).max().orElse(0);
  }

  /** Memory of the same kind in the place of {@code old}, which is freed. */
  Region replace(Region old) {
    old.buffer.close();
    Region fresh = new Region(old.name, old.use, old.pages(), mapper());
    regions.set(regions.indexOf(old), fresh);
    measure();
    return fresh;
  }

  List<Region> regions() {
    return regions;
  }

  List<Region> data() {
    return regions.stream().filter(r -> r.use == Use.DATA).toList();
  }

  Region find(long address) {
    if (address < lowest || address >= highest) {
      return null;
    }
    for (Region r : regions) {
      if (r.contains(address)) {
        return r;
      }
    }
    return null;
  }

  Region any(SplittableRandom random, Use use) {
    List<Region> all = regions.stream().filter(r -> r.use == use).toList();
    return all.get(random.nextInt(all.size()));
  }

  // ---- what a command may reach

  /**
   * The pages that can be reached from some words, taken as addresses, directly or through lists
   * that lie in the pages reached. A superset of what any reading of the words as PRPs or SGLs
   * names.
   */
  Reach reach(long... words) {
    Reach reach = new Reach();
    for (int i = 0; i < words.length; i++) {
      reach.follow(words[i], i + 1 < words.length ? words[i + 1] : 0);
    }
    reach.finish();
    return reach;
  }

  /** Pages reached. */
  final class Reach {
    private final BitSet[] pages = new BitSet[regions.size()];
    private final Deque<long[]> open = new ArrayDeque<>();
    private boolean ring;

    /** Whether a ring is among them. */
    boolean ring() {
      return ring;
    }

    boolean contains(Region r, int page) {
      BitSet set = pages[regions.indexOf(r)];
      return set != null && set.get(page);
    }

    private void follow(long address, long lengthWord) {
      if (address < lowest || address >= highest) {
        return;
      }
      for (int i = 0; i < regions.size(); i++) {
        Region r = regions.get(i);
        if (r.contains(address)) {
          // As an SGL descriptor: the next word's low half is the length.
          long length = Math.max(1, lengthWord & 0xFFFF_FFFFL);
          long last = Math.min(address - r.base + length, r.memory.byteSize()) - 1;
          mark(i, r, (int) ((address - r.base) / PAGE), (int) (last / PAGE));
        }
      }
    }

    private void mark(int index, Region r, int first, int last) {
      if (r.use == Use.RING) {
        ring = true;
        return;
      }
      if (pages[index] == null) {
        pages[index] = new BitSet(r.pages());
      }
      for (int page = first; page <= last; page++) {
        if (!pages[index].get(page)) {
          pages[index].set(page);
          open.add(new long[] {index, page});
        }
      }
    }

    private void finish() {
      while (!open.isEmpty()) {
        long[] at = open.remove();
        MemorySegment s = regions.get((int) at[0]).believed;
        for (long off = at[1] * PAGE; off < (at[1] + 1) * PAGE; off += Long.BYTES) {
          long word = s.get(ValueLayout.JAVA_LONG_UNALIGNED, off);
          if (word != 0) {
            long next = off + Long.BYTES;
            follow(word, next < s.byteSize() ? s.get(ValueLayout.JAVA_LONG_UNALIGNED, next) : 0);
          }
        }
      }
    }
  }

  // ---- what the controller did

  /** Nothing outside of what is mapped was ever written. */
  void requireGuards() {
    regions.forEach(Region::requireGuards);
  }

  /** No data changed but that in {@code allowed} (null: nothing may change), which is learnt. */
  void requireUnchanged(Reach allowed, Object what) {
    for (Region r : regions) {
      if (r.use != Use.DATA || r.isAsBelieved()) {
        continue;
      }
      for (int page = 0; page < r.pages(); page++) {
        boolean mayChange = allowed != null && r.mapped && allowed.contains(r, page);
        if (!mayChange && !r.isAsBelieved(page)) {
          throw new AssertionError("%s wrote page %d of %s".formatted(what, page, r.name));
        }
      }
      r.believe();
    }
  }

  /** Whatever the data is now is what the host believes. */
  void believeData() {
    regions.stream().filter(r -> r.use == Use.DATA && r.mapped).forEach(Region::believe);
  }

  /** The rings hold what the host wrote and the completions it took. */
  void requireRings(Object what) {
    for (Region r : regions) {
      if (r.use == Use.RING && !r.isAsBelieved()) {
        throw new AssertionError("after %s: %s holds what nobody wrote".formatted(what, r.name));
      }
    }
  }

  static void word(MemorySegment s, long offset, long value) {
    s.set(LONG, offset, value);
  }

  @Override
  public void close() {
    requireGuards();
    regions.forEach(r -> r.buffer.close());
  }
}
