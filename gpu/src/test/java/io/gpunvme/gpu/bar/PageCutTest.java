package io.gpunvme.gpu.bar;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.BitSet;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PageCutTest {
  private static final int GRANULE = PageCut.GRANULE;

  @Test
  void partsFollowEachOtherAndEveryGranuleHasAMark() {
    for (int first = 0; first < 16; first++) {
      for (int granules = 1; granules < 40; granules++) {
        PageCut cut = new PageCut((long) first * GRANULE, (long) granules * GRANULE);
        BitSet marked = new BitSet();
        Set<Long> numbers = new HashSet<>();
        long end = 0;
        for (int page = 0; page < cut.pages(); page++) {
          assertThat(cut.start(page)).as("%s", cut).isEqualTo(end);
          assertThat((cut.pageOffset() + end) % PageCut.PAGE).isEqualTo(cut.inPage(page));
          for (int i = 0; i < cut.marks(page); i++) {
            long at = end + cut.offset(page, i);
            marked.set((int) (at / GRANULE));
            assertThat(numbers.add(cut.number(page, i))).isTrue();
            assertThat(PageCut.page(cut.number(page, i))).isEqualTo(page);
            boolean last = i == cut.marks(page) - 1;
            assertThat(at % GRANULE).isEqualTo(last ? GRANULE - PageCut.MARK : 0);
          }
          assertThat(cut.bytes(page)).isBetween(1L, (long) PageCut.PAGE);
          end += cut.bytes(page);
        }
        assertThat(end).isEqualTo(cut.size());
        assertThat(marked.cardinality()).isEqualTo(granules);
      }
    }
  }

  @ParameterizedTest
  @CsvSource({
    "-4096,4096",
    "65536,4096",
    "100,4096",
    "0,0",
    "0,100",
    "0,-4096",
    "0,9223372036854771712"
  })
  void refusesWhatIsNoMemory(long pageOffset, long size) {
    assertThatThrownBy(() -> new PageCut(pageOffset, size))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void marksOfAKeyDifferFromEachOtherAndFromThoseOfAnother() {
    MarkKey one = MarkKey.random();
    MarkKey two = MarkKey.random();
    Set<Long> words = new HashSet<>();
    for (long number = 0; number < 10_000; number++) {
      for (MarkKey key : new MarkKey[] {one, two}) {
        assertThat(words.add(key.first(number))).isTrue();
        assertThat(words.add(key.second(number))).isTrue();
      }
    }
  }
}
