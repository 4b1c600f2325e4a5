package io.gpunvme.gpu.bar;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.gpunvme.gpu.bar.BarSearchException.Problem;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class BarSearchTest {
  private static final int BAR_PAGES = 64;

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  private final SplittableRandom random = new SplittableRandom(seed);
  private final Arena arena = Arena.ofShared();
  private final FakeBar bar = new FakeBar(arena, random, BAR_PAGES);

  @AfterEach
  void close() {
    arena.close();
  }

  private long[] find(MarkedMemory memory) {
    return BarSearch.find(bar.memory, "BAR 1", memory);
  }

  @Test
  void findsBuffersOnAnyPagesAndLeavesEverythingAsItWas() {
    for (int round = 0; round < 50; round++) {
      FakeBar one = new FakeBar(arena, random, 24);
      PageCut cut = one.anyCut(20);
      int[] pages = one.take(cut.pages());
      byte[] before = one.contents();
      ScatteredMemory buffer = one.buffer(cut, pages);
      long[] places = BarSearch.find(one.memory, "BAR 1", buffer);
      long[] expected = new long[pages.length];
      for (int i = 0; i < pages.length; i++) {
        expected[i] = (long) pages[i] * PageCut.PAGE + cut.inPage(i);
      }
      assertThat(places).as("%s, seed %d", cut, seed).isEqualTo(expected);
      assertThat(one.contents()).as("%s, seed %d", cut, seed).isEqualTo(before);
      assertThat(buffer.open).isZero();
    }
  }

  @Test
  void findsEachOfManyBuffers() {
    List<int[]> pages = new ArrayList<>();
    List<ScatteredMemory> buffers = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      int[] some = bar.take(8);
      pages.add(some);
      buffers.add(bar.buffer(new PageCut(0, 8L * PageCut.PAGE), some));
    }
    for (int i = 0; i < 8; i++) {
      long[] places = find(buffers.get(i));
      for (int k = 0; k < 8; k++) {
        assertThat(places[k]).isEqualTo((long) pages.get(i)[k] * PageCut.PAGE);
      }
    }
  }

  /** A buffer of ten pages, one of which, maybe, is not in the BAR. */
  private ScatteredMemory buffer(int missing, MemorySegment instead) {
    List<MemorySegment> segments = new ArrayList<>();
    for (int i = 0; i < 10; i++) {
      segments.add(i == missing ? instead : bar.page(bar.take()));
    }
    PageCut cut = new PageCut(0, 10L * PageCut.PAGE);
    return new ScatteredMemory(segments, cut, FakeBar.GPU, bar.memory.byteSize());
  }

  private MemorySegment elsewhere() {
    return arena.allocate(PageCut.PAGE, PageCut.PAGE);
  }

  private void assertRefused(ScatteredMemory buffer, Problem problem, int page, String... parts) {
    BarSearchException refused = catchThrowableOfType(BarSearchException.class, () -> find(buffer));
    assertThat(refused).as("seed %d", seed).isNotNull();
    assertThat(refused.problem()).as(refused.getMessage()).isEqualTo(problem);
    assertThat(refused.page()).isEqualTo(page);
    assertThat(refused)
        .hasMessageContaining("page " + page + " (of 64 KiB) of a GPU's memory")
        .hasMessageContaining("BAR 1")
        .hasMessageContainingAll(parts);
    assertThat(buffer.open).as("marks were closed").isZero();
  }

  @Test
  void aPageThatIsNotInTheBarIsRefused() {
    byte[] before = bar.contents();
    MemorySegment outside = elsewhere();
    outside.fill((byte) 7);
    int missing = random.nextInt(10);
    assertRefused(
        buffer(missing, outside), Problem.NOT_FOUND, missing, "9 of 10 pages", "static BAR1");
    assertThat(bar.contents()).isEqualTo(before);
    assertThat(outside.toArray(ValueLayout.JAVA_BYTE)).containsOnly(7);
  }

  @Test
  void aFirstPageThatBeginsElsewhereThanItsOwnerSaysIsRefused() {
    // The owner says at byte 4096 of a page, and it is where a page begins.
    MemorySegment shifted = bar.memory.asSlice(3L * PageCut.PAGE - 4096, PageCut.PAGE);
    PageCut cut = new PageCut(4096, 2L * PageCut.PAGE - 4096);
    List<MemorySegment> pages = List.of(shifted, bar.page(8));
    assertRefused(
        new ScatteredMemory(pages, cut, FakeBar.GPU, bar.memory.byteSize()),
        Problem.NOT_FOUND,
        0,
        "1 of 2 pages");
  }

  @Test
  void aPageThatIsThereTwiceIsRefused() {
    ScatteredMemory buffer = buffer(-1, elsewhere());
    int page = random.nextInt(10);
    MemorySegment other = bar.page(bar.take());
    buffer.meddle(
        (round, key) -> {
          MemorySegment copy = arena.allocate(PageCut.PAGE);
          buffer.copy((long) page * PageCut.PAGE, copy, true);
          other.copyFrom(copy);
        });
    assertRefused(buffer, Problem.FOUND_TWICE, page, "and also at");
  }

  @Test
  void twoPagesWithTheSameMarkAreRefused() {
    ScatteredMemory buffer = buffer(-1, elsewhere());
    buffer.meddle(
        (round, key) -> {
          MemorySegment copy = arena.allocate(PageCut.PAGE);
          buffer.copy(4L * PageCut.PAGE, copy, true);
          buffer.copy(7L * PageCut.PAGE, copy, false);
        });
    assertRefused(buffer, Problem.FOUND_TWICE, 4, "and also at");
  }

  @ParameterizedTest
  @ValueSource(longs = {8, 15, 4096, 32768, 32775, 61440, 65520, 65535})
  void oneWrongByteOfOneMarkIsRefused(long offset) {
    ScatteredMemory buffer = buffer(-1, elsewhere());
    int page = random.nextInt(10);
    byte[] before = bar.contents();
    buffer.meddle(
        (round, key) -> {
          MemorySegment one = arena.allocate(1);
          buffer.copy((long) page * PageCut.PAGE + offset, one, true);
          one.set(ValueLayout.JAVA_BYTE, 0, (byte) (one.get(ValueLayout.JAVA_BYTE, 0) ^ 0x10));
          buffer.copy((long) page * PageCut.PAGE + offset, one, false);
        });
    assertRefused(buffer, Problem.DIFFERENT, page, "but its mark is", "only part of the page");
    assertThat(bar.contents()).isEqualTo(before);
  }

  @Test
  void aPageOfWhichOnlyACopyWasThereIsRefused() {
    MemorySegment outside = elsewhere();
    MemorySegment copy = bar.page(bar.take());
    int page = random.nextInt(10);
    ScatteredMemory buffer = buffer(page, outside);
    buffer.meddle(
        (round, key) -> {
          if (round == 1) {
            copy.copyFrom(outside);
          }
        });
    assertRefused(buffer, Problem.STALE, page, "was a copy");
  }

  @Test
  void aPageThatIsNotWrittenThroughTheBarIsRefused() {
    MemorySegment outside = elsewhere();
    MemorySegment copy = bar.page(bar.take());
    int page = random.nextInt(10);
    ScatteredMemory buffer = buffer(page, outside);
    buffer.meddle((round, key) -> copy.copyFrom(outside));
    assertRefused(buffer, Problem.NOT_WRITTEN, page, "writes go elsewhere");
  }

  @Test
  void anOwnerThatFailsIsHeardAndNothingStaysMarked() {
    byte[] before = bar.contents();
    ScatteredMemory buffer = buffer(-1, elsewhere());
    buffer.meddle(
        (round, key) -> {
          if (round == 2) {
            throw new IllegalStateException("no GPU any more");
          }
        });
    assertThatThrownBy(() -> find(buffer)).hasMessage("no GPU any more");
    assertThat(buffer.open).isZero();
    assertThat(bar.contents()).isEqualTo(before);
  }
}
