package io.gpunvme.tools.graph;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class PageTraceTest {
  private static final int PAGES = 7;

  /** Tries whatever can be kept: a set of pages is a number, a page a bit. */
  private static int fewest(int[] wanted, int frames) {
    int[] reads = new int[1 << PAGES];
    for (int kept = 1; kept < reads.length; kept++) {
      reads[kept] = Integer.MAX_VALUE / 2;
    }
    for (int page : wanted) {
      int[] after = new int[reads.length];
      for (int kept = 0; kept < after.length; kept++) {
        after[kept] = Integer.MAX_VALUE / 2;
      }
      for (int before = 0; before < reads.length; before++) {
        int have = before | 1 << page;
        int cost = reads[before] + (have == before ? 0 : 1);
        for (int kept = have; ; kept = (kept - 1) & have) {
          if (Integer.bitCount(kept) <= frames) {
            after[kept] = Math.min(after[kept], cost);
          }
          if (kept == 0) {
            break;
          }
        }
      }
      reads = after;
    }
    return IntStream.of(reads).min().orElseThrow();
  }

  @Test
  void noChoiceReadsFewer() {
    Random random = new Random(3);
    for (int run = 0; run < 200; run++) {
      PageTrace trace = new PageTrace(PAGES);
      int frames = 1 + random.nextInt(4);
      int[] wanted = random.ints(random.nextInt(40), 0, PAGES).toArray();
      int half = wanted.length / 2;
      trace.add(IntStream.of(wanted).limit(half).toArray());
      trace.add(IntStream.of(wanted).skip(half).toArray());
      assertThat(trace.leastReads(frames))
          .as("run %d, %d frames", run, frames)
          .isEqualTo(fewest(wanted, frames));
    }
  }

  /** More numbers than one and two levels of bits have. */
  @Test
  void sweepsKeepWhatFits() {
    int pages = 3000;
    PageTrace trace = new PageTrace(pages);
    int rounds = 10;
    for (int round = 0; round < rounds; round++) {
      int even = round % 2;
      trace.add(IntStream.range(0, pages).map(i -> even == 0 ? i : pages - 1 - i).toArray());
    }
    assertThat(trace.leastReads(pages)).isEqualTo(pages);
    assertThat(trace.leastReads(1000)).isEqualTo(pages + (rounds - 1) * 2000);
    assertThat(new PageTrace(5).leastReads(1)).isZero();
  }
}
