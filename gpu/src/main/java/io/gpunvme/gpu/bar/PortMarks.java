package io.gpunvme.gpu.bar;

import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import io.gpunvme.nvme.memory.RemotePort;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** Marks by copies of the whole memory to the host and back, a few pages at a time. */
final class PortMarks implements PageMarks {
  private static final ValueLayout.OfLong WORD =
      JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final int PAGES_AT_ONCE = 64;

  private final PageCut cut;
  private final RemotePort port;
  private final Arena arena = Arena.ofShared();
  private final MemorySegment chunk;
  private final MemorySegment before;
  private boolean saved;
  private boolean closed;

  PortMarks(MarkedMemory memory) {
    this.cut = new PageCut(memory.pageOffset(), memory.size());
    long pages = cut.pages();
    this.chunk = arena.allocate(Math.min(pages, PAGES_AT_ONCE) * PageCut.PAGE, PageCut.GRANULE);
    this.before = arena.allocate(pages * PageCut.MARKS * PageCut.MARK, PageCut.MARK);
    this.port = memory.openPort(RemotePort.Use.DATA);
  }

  @Override
  public void write(MarkKey key) {
    if (!saved) {
      save();
      saved = true;
    }
    change(
        (copy, at, number) -> {
          copy.set(WORD, at, key.first(number));
          copy.set(WORD, at + Long.BYTES, key.second(number));
        });
  }

  /** All of it before the first mark: whatever fails afterwards, everything can be brought back. */
  private void save() {
    for (int page = 0; page < cut.pages(); page += PAGES_AT_ONCE) {
      forEachMark(
          page,
          read(page),
          (copy, at, number) ->
              MemorySegment.copy(copy, at, before, number * PageCut.MARK, PageCut.MARK));
    }
  }

  private void change(MarkVisitor visitor) {
    for (int page = 0; page < cut.pages(); page += PAGES_AT_ONCE) {
      MemorySegment copy = read(page);
      forEachMark(page, copy, visitor);
      port.write(cut.start(page), copy);
    }
  }

  @Override
  public long firstWrong(MarkKey key) {
    long[] wrong = {-1};
    for (int page = 0; page < cut.pages() && wrong[0] < 0; page += PAGES_AT_ONCE) {
      forEachMark(
          page,
          read(page),
          (copy, at, number) -> {
            boolean right =
                copy.get(WORD, at) == key.first(number)
                    && copy.get(WORD, at + Long.BYTES) == key.second(number);
            if (!right && wrong[0] < 0) {
              wrong[0] = number;
            }
          });
    }
    return wrong[0];
  }

  private MemorySegment read(int firstPage) {
    int last = end(firstPage) - 1;
    long bytes = cut.start(last) + cut.bytes(last) - cut.start(firstPage);
    MemorySegment copy = chunk.asSlice(0, bytes);
    port.read(cut.start(firstPage), copy);
    return copy;
  }

  private int end(int firstPage) {
    return Math.min(firstPage + PAGES_AT_ONCE, cut.pages());
  }

  private interface MarkVisitor {
    void visit(MemorySegment copy, long at, long number);
  }

  /** Each mark with its place in the chunk that begins with a page. */
  private void forEachMark(int firstPage, MemorySegment copy, MarkVisitor visitor) {
    for (int page = firstPage; page < end(firstPage); page++) {
      long start = cut.start(page) - cut.start(firstPage);
      for (int i = 0; i < cut.marks(page); i++) {
        visitor.visit(copy, start + cut.offset(page, i), cut.number(page, i));
      }
    }
  }

  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    try (arena;
        port) {
      if (saved) {
        change(
            (copy, at, number) ->
                MemorySegment.copy(before, number * PageCut.MARK, copy, at, PageCut.MARK));
      }
    }
  }
}
