package io.gpunvme.gpu.queue;

import java.util.ArrayList;
import java.util.List;
import java.util.function.LongUnaryOperator;

/**
 * What a controller makes of the two PRP entries of a command, from the text of Base 2.0, 4.1.1
 * alone. Whatever that text forbids is an {@link AssertionError}.
 */
public final class PrpWalker {
  private final long pageSize;
  private final LongUnaryOperator memory;
  private int pointers;

  /**
   * @param pageSize CC.MPS in bytes
   * @param memory the 8 bytes at a bus address; throws where there is no list
   */
  public PrpWalker(long pageSize, LongUnaryOperator memory) {
    this.pageSize = pageSize;
    this.memory = memory;
  }

  /** The bus address of each page's part of the data, in order. */
  public List<Long> walk(long prp1, long prp2, long bytes) {
    pointers = 0;
    require(prp1 % 4 == 0, "the offset of PRP1", prp1);
    List<Long> places = new ArrayList<>();
    places.add(prp1);
    long rest = bytes - (pageSize - prp1 % pageSize);
    if (rest <= 0) {
      require(prp2 == 0, "PRP2, which nothing is left for,", prp2);
    } else if (rest <= pageSize) {
      require(prp2 % pageSize == 0, "the second page", prp2);
      places.add(prp2);
    } else {
      require(prp2 % Long.BYTES == 0, "the pointer to the list", prp2);
      list(prp2, Math.ceilDiv(rest, pageSize), places);
    }
    return places;
  }

  private void list(long from, long entries, List<Long> places) {
    // A power of two: no divisions, of which there would be millions.
    long mask = pageSize - 1;
    long at = from;
    for (long left = entries; left > 0; left--) {
      boolean lastSlot = (at & mask) == pageSize - Long.BYTES;
      if (lastSlot && left > 1) {
        at = memory.applyAsLong(at);
        require(at != 0 && (at & mask) == 0, "a pointer to the next list page", at);
        pointers++;
      }
      long entry = memory.applyAsLong(at);
      require(entry != 0 && (entry & mask) == 0, "an entry of the list", entry);
      places.add(entry);
      at += Long.BYTES;
    }
  }

  private static void require(boolean condition, String what, long value) {
    if (!condition) {
      throw new AssertionError("%s is %Xh".formatted(what, value));
    }
  }

  /** How many pointers from one list page to another the last walk met. */
  public int pointers() {
    return pointers;
  }
}
