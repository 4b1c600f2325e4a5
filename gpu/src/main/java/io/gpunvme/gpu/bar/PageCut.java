package io.gpunvme.gpu.bar;

/**
 * A piece of memory cut where its device's pages of 64 KiB end, and where on these pages marks lie:
 * at the beginning of each 4096 bytes, and at the end of the page. So nothing depends on how large
 * the pages really are, from 4 KiB on.
 *
 * <p>Immutable. Pages are numbered from 0; the first and the last one may be shorter than the
 * others. Marks are numbered across all pages, {@link #MARKS} for each page however short.
 *
 * @param pageOffset where on its first page the memory begins, a multiple of 4096 below 64 KiB
 * @param size bytes, a multiple of 4096 above 0
 */
public record PageCut(long pageOffset, long size) {
  /** Bytes of a page: the smallest that a GPU's own memory has today. */
  public static final int PAGE = 64 << 10;

  /** Bytes between the beginnings of marks: what controllers are given memory in. */
  public static final int GRANULE = 4096;

  /** Bytes of a mark. */
  public static final int MARK = 2 * Long.BYTES;

  /** How many numbers of marks a page has. */
  public static final int MARKS = PAGE / GRANULE + 1;

  private static final int LAST = MARKS - 1;

  /** Checks the numbers. */
  public PageCut {
    if (pageOffset < 0
        || pageOffset >= PAGE
        || size <= 0
        || (pageOffset | size) % GRANULE != 0
        || size > Long.MAX_VALUE - PAGE) {
      throw new IllegalArgumentException(
          "%d bytes from byte %d of a page on".formatted(size, pageOffset));
    }
  }

  /** How many pages there are. */
  public int pages() {
    return Math.toIntExact(Math.ceilDiv(pageOffset + size, PAGE));
  }

  /** Where in the memory a page begins, bytes. */
  public long start(int page) {
    return page == 0 ? 0 : (long) page * PAGE - pageOffset;
  }

  /** How many bytes of the memory lie on a page. */
  public long bytes(int page) {
    return Math.min(size, start(page + 1)) - start(page);
  }

  /** Where on its page the memory begins: above 0 only on the first. */
  public long inPage(int page) {
    return page == 0 ? pageOffset : 0;
  }

  /** How many marks a page has. */
  public int marks(int page) {
    return (int) (bytes(page) / GRANULE) + 1;
  }

  /**
   * Where a mark begins, bytes from the beginning of its page's part of the memory.
   *
   * @param i 0 ≤ i &lt; {@link #marks}
   */
  public long offset(int page, int i) {
    return isLast(page, i) ? bytes(page) - MARK : (long) i * GRANULE;
  }

  /** The number of a mark. */
  public long number(int page, int i) {
    return (long) page * MARKS + (isLast(page, i) ? LAST : i);
  }

  private boolean isLast(int page, int i) {
    return i == marks(page) - 1;
  }

  /** The page of a mark. */
  public static int page(long number) {
    return Math.toIntExact(number / MARKS);
  }
}
