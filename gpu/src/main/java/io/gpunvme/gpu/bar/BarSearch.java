package io.gpunvme.gpu.bar;

import io.gpunvme.gpu.bar.BarSearchException.Problem;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Finds where in a BAR each page of a buffer is, and believes it only after all of this:
 *
 * <ol>
 *   <li>The owner marks every page by a random key. One word at each 64 KiB of the whole BAR is
 *       compared with the first words of all pages: each has to be there once.
 *   <li>Every mark of every page is there.
 *   <li>The owner marks every page by another key, and again every mark is there: what was found is
 *       no copy.
 *   <li>Marks by a third key are written through the BAR, and the owner finds every one of them.
 * </ol>
 *
 * <p>A load from a BAR takes about 1 µs: the first step costs 0.4 s for 24 GiB of BAR, the others
 * 1.1 s for each GiB of the buffer. Afterwards the buffer has the contents that it had.
 */
final class BarSearch {
  private static final VarHandle WORD =
      ValueLayout.JAVA_LONG
          .withOrder(ByteOrder.LITTLE_ENDIAN)
          .varHandle()
          .withInvokeExactBehavior();

  /** Marks of two searches in the same memory would bring back each other's. */
  private static final Object ONE_AT_A_TIME = new Object();

  private static final long NOWHERE = -1;

  private final MemorySegment bar;
  private final String barName;
  private final String memoryName;
  private final PageCut cut;
  private final MarkedMemory memory;

  private BarSearch(MemorySegment bar, String barName, MarkedMemory memory) {
    this.bar = bar;
    this.barName = barName;
    this.memory = memory;
    this.memoryName = memory.name();
    this.cut = new PageCut(memory.pageOffset(), memory.size());
  }

  /**
   * Searches.
   *
   * @param bar its size a multiple of 64 KiB
   * @param barName for messages
   * @return where in the BAR each page's part of the memory begins, as {@link PageCut} cuts it
   * @throws BarSearchException if anything is not as it should be
   */
  static long[] find(MemorySegment bar, String barName, MarkedMemory memory) {
    synchronized (ONE_AT_A_TIME) {
      return new BarSearch(bar, barName, memory).run();
    }
  }

  private long[] run() {
    try (PageMarks marks = memory.openMarks()) {
      MarkKey key = MarkKey.random();
      marks.write(key);
      long[] places = scan(key);
      compare(places, key, Problem.DIFFERENT);
      MarkKey second = MarkKey.random();
      marks.write(second);
      compare(places, second, Problem.STALE);
      MarkKey third = MarkKey.random();
      writeThrough(places, third);
      requireArrived(places, marks.firstWrong(third));
      return places;
    }
  }

  private long[] scan(MarkKey key) {
    Map<Long, Integer> wanted = new HashMap<>();
    for (int page = 0; page < cut.pages(); page++) {
      wanted.put(key.first(cut.number(page, 0)), page);
    }
    long[] places = new long[cut.pages()];
    Arrays.fill(places, NOWHERE);
    // Only the first page may begin elsewhere than at a multiple of 64 KiB.
    for (long inPage : cut.pageOffset() == 0 ? new long[] {0} : new long[] {cut.pageOffset(), 0}) {
      for (long at = inPage; at < bar.byteSize(); at += PageCut.PAGE) {
        Integer page = wanted.get(load(at));
        if (page != null && cut.inPage(page) == inPage) {
          put(places, page, at);
        }
      }
    }
    requireAll(places);
    return places;
  }

  private void put(long[] places, int page, long at) {
    if (places[page] != NOWHERE) {
      String where =
          "is at offset %Xh of %s and also at offset %Xh: a controller might reach either"
              .formatted(places[page], barName, at);
      throw refusal(Problem.FOUND_TWICE, page, at, where);
    }
    places[page] = at;
  }

  private void requireAll(long[] places) {
    long found = Arrays.stream(places).filter(p -> p != NOWHERE).count();
    for (int page = 0; page < places.length; page++) {
      if (places[page] == NOWHERE) {
        String missing =
            ("is not in the %Xh bytes of %s, where %d of %d pages were found: the BAR does not show"
                 + " all of the memory. With the patched open kernel modules and a static BAR1 it"
                 + " does")
                .formatted(bar.byteSize(), barName, found, places.length);
        throw refusal(Problem.NOT_FOUND, page, NOWHERE, missing);
      }
    }
  }

  private void compare(long[] places, MarkKey key, Problem problem) {
    for (int page = 0; page < places.length; page++) {
      for (int i = 0; i < cut.marks(page); i++) {
        long at = places[page] + cut.offset(page, i);
        long number = cut.number(page, i);
        compareWord(page, at, key.first(number), problem);
        compareWord(page, at + Long.BYTES, key.second(number), problem);
      }
    }
  }

  private void compareWord(int page, long at, long expected, Problem problem) {
    long seen = load(at);
    if (seen != expected) {
      String why =
          problem == Problem.STALE
              ? "the earlier match was a copy, or the page has moved"
              : "only part of the page is there";
      String differs =
          "has %016Xh at offset %Xh of %s, but its mark is %016Xh: %s"
              .formatted(seen, at, barName, expected, why);
      throw refusal(problem, page, at, differs);
    }
  }

  private void writeThrough(long[] places, MarkKey key) {
    long last = 0;
    for (int page = 0; page < places.length; page++) {
      for (int i = 0; i < cut.marks(page); i++) {
        long number = cut.number(page, i);
        last = places[page] + cut.offset(page, i);
        WORD.setOpaque(bar, last, key.first(number));
        WORD.setOpaque(bar, last + Long.BYTES, key.second(number));
      }
    }
    // Stores to a BAR may be on their way still; the answer to a load comes after them.
    VarHandle.fullFence();
    load(last);
  }

  private void requireArrived(long[] places, long wrong) {
    if (wrong >= 0) {
      int page = PageCut.page(wrong);
      String lost =
          "does not change when offset %Xh of %s is written: reads work, but writes go elsewhere"
              .formatted(places[page], barName);
      throw refusal(Problem.NOT_WRITTEN, page, places[page], lost);
    }
  }

  private long load(long at) {
    return (long) WORD.getAcquire(bar, at);
  }

  private BarSearchException refusal(Problem problem, int page, long barOffset, String text) {
    String message = "page %d (of 64 KiB) of %s %s".formatted(page, memoryName, text);
    return new BarSearchException(message, problem, page, barOffset);
  }
}
