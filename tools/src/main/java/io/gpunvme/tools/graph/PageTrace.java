package io.gpunvme.tools.graph;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The pages that a program wanted, each once in a round, in the order in which it was first wanted
 * there; and the fewest reads with which a cache could have served that.
 */
final class PageTrace {
  private static final ValueLayout.OfInt PAGE =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);

  /** What an array of Java can have. */
  private static final int MOST = Integer.MAX_VALUE - 8;

  /** Of a page that is not wanted again. */
  private static final int NEVER = -1;

  private final int pages;
  private final List<int[]> rounds = new ArrayList<>();
  private long count;

  /**
   * @param weighted whether weights are wanted too; their pages come after those of edges
   * @throws GraphException if there are more pages than can be counted here, about 2^31
   */
  PageTrace(GraphHeader header, int pageBytes, boolean weighted) {
    long all = Math.ceilDiv(header.edges() * Integer.BYTES, (long) pageBytes);
    if (weighted) {
      all += Math.ceilDiv(header.edges(), (long) pageBytes);
    }
    pages = requireCountable(all);
  }

  /** For tests. */
  PageTrace(int pages) {
    this.pages = pages;
  }

  private static int requireCountable(long number) {
    if (number > MOST) {
      throw new GraphException(
          GraphException.Kind.TOO_LARGE,
          "the fewest reads",
          "%d pages were wanted, and %d can be looked at: use larger pages, or leave out --least"
              .formatted(number, MOST));
    }
    return (int) number;
  }

  /** All that there are. */
  int pages() {
    return pages;
  }

  /** Copies from the beginning of something to a segment. */
  interface Copy {
    void to(long offset, MemorySegment to);
  }

  /**
   * Takes a round.
   *
   * @param wanted pages, u32 each
   */
  void add(long wanted, Copy copy) {
    if (wanted == 0) {
      return;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment round = arena.allocate(PAGE, wanted);
      copy.to(0, round);
      add(round.toArray(PAGE));
    }
  }

  /** Takes a round. */
  void add(int[] wanted) {
    rounds.add(wanted);
    count += wanted.length;
  }

  /**
   * Reads that are needed if a page is kept for as long as those that are wanted sooner leave room
   * (Belady 1966). One that is wanted later than all that are kept is read and not kept.
   *
   * @param frames pages that the cache has
   * @throws GraphException if more were wanted than can be looked at here, about 2^31
   */
  long leastReads(long frames) {
    int length = requireCountable(count);
    int[] next = nextUses(length);
    // Of each page that is kept, when it is wanted next.
    LargestOf kept = new LargestOf(length);
    long held = 0;
    long reads = 0;
    for (int now = 0; now < length; now++) {
      if (kept.remove(now)) {
        held--;
      } else {
        reads++;
      }
      if (next[now] == NEVER) {
        continue;
      }
      kept.add(next[now]);
      if (++held > frames) {
        kept.remove(kept.largest());
        held--;
      }
    }
    return reads;
  }

  private int[] nextUses(int length) {
    int[] next = new int[length];
    int[] last = new int[pages];
    Arrays.fill(last, NEVER);
    int at = length;
    for (int[] round : rounds.reversed()) {
      for (int i = round.length - 1; i >= 0; i--) {
        at--;
        next[at] = last[round[i]];
        last[round[i]] = at;
      }
    }
    return next;
  }

  /**
   * A set of numbers whose largest is found at once: a bit for each, and above each 64 bits one
   * that says whether any of them is set.
   */
  private static final class LargestOf {
    private final List<long[]> levels = new ArrayList<>();

    LargestOf(int bound) {
      int bits = bound;
      do {
        int words = Math.ceilDiv(Math.max(bits, 1), Long.SIZE);
        levels.add(new long[words]);
        bits = words;
      } while (bits > 1);
    }

    void add(int number) {
      int at = number;
      for (long[] level : levels) {
        level[at / Long.SIZE] |= 1L << at;
        at /= Long.SIZE;
      }
    }

    /** Whether it was there. */
    boolean remove(int number) {
      if ((levels.getFirst()[number / Long.SIZE] & 1L << number) == 0) {
        return false;
      }
      int at = number;
      for (long[] level : levels) {
        level[at / Long.SIZE] &= ~(1L << at);
        if (level[at / Long.SIZE] != 0) {
          break;
        }
        at /= Long.SIZE;
      }
      return true;
    }

    /** Of a set that has one. */
    int largest() {
      int at = 0;
      for (long[] level : levels.reversed()) {
        at = at * Long.SIZE + Long.SIZE - 1 - Long.numberOfLeadingZeros(level[at]);
      }
      return at;
    }
  }
}
