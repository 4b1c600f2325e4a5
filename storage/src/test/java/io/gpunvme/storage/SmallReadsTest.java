package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.storage.path.PathKind;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class SmallReadsTest {
  private static final List<PathKind> TWO = List.of(PathKind.PINNED, PathKind.MMAP);

  /** Reads that take as long as {@code times} says; how many went each way. */
  private static Map<PathKind, Integer> read(
      SmallReads small, int reads, int bytes, Map<PathKind, Integer> times) {
    Map<PathKind, Integer> went = new EnumMap<>(PathKind.class);
    for (int i = 0; i < reads; i++) {
      PathKind kind = small.choose(bytes);
      went.merge(kind, 1, Integer::sum);
      small.measured(kind, bytes, times.get(kind));
    }
    return went;
  }

  @Test
  void theFirstReadsOpenOnePathOnly() {
    SmallReads small = new SmallReads(TWO);
    assertThat(read(small, SmallReads.BEFORE_OTHERS, 4096, Map.of(PathKind.MMAP, 9000)))
        .containsOnlyKeys(PathKind.MMAP);
  }

  @Test
  void theFasterOneGetsNearlyAllAndTheOtherIsTriedNowAndThen() {
    for (PathKind faster : TWO) {
      SmallReads small = new SmallReads(TWO);
      Map<PathKind, Integer> times = new EnumMap<>(PathKind.class);
      TWO.forEach(kind -> times.put(kind, kind == faster ? 3000 : 9000));
      read(small, 100, 4096, times);
      assertThat(small.best(4096)).isEqualTo(faster);

      Map<PathKind, Integer> went = read(small, 100 * SmallReads.TRY_EVERY, 4096, times);
      PathKind slower = faster == PathKind.MMAP ? PathKind.PINNED : PathKind.MMAP;
      assertThat(went.get(slower)).isEqualTo(100);
    }
  }

  @Test
  void itChangesItsMindWhenTimesChange() {
    SmallReads small = new SmallReads(TWO);
    read(small, 1000, 4096, Map.of(PathKind.MMAP, 3000, PathKind.PINNED, 9000));
    assertThat(small.best(4096)).isEqualTo(PathKind.MMAP);
    read(small, 1000, 4096, Map.of(PathKind.MMAP, 90_000, PathKind.PINNED, 9000));
    assertThat(small.best(4096)).isEqualTo(PathKind.PINNED);
  }

  /** A pause of the machine during one read says nothing of the path. */
  @Test
  void oneSlowReadChangesNothing() {
    SmallReads small = new SmallReads(TWO);
    read(small, 1000, 4096, Map.of(PathKind.MMAP, 3000, PathKind.PINNED, 9000));
    small.measured(PathKind.MMAP, 4096, 50_000_000);
    assertThat(small.best(4096)).isEqualTo(PathKind.MMAP);
  }

  @Test
  void longerRangesHaveAnAnswerOfTheirOwn() {
    SmallReads small = new SmallReads(TWO);
    read(small, 1000, 4096, Map.of(PathKind.MMAP, 3000, PathKind.PINNED, 9000));
    read(small, 1000, 65536, Map.of(PathKind.MMAP, 30_000, PathKind.PINNED, 9000));
    assertThat(small.best(512)).isEqualTo(PathKind.MMAP);
    assertThat(small.best(65536)).isEqualTo(PathKind.PINNED);
  }

  @Test
  void aPathThatCannotBeOpenedIsChosenNoMore() {
    SmallReads small = new SmallReads(TWO);
    assertThat(small.drop(PathKind.MMAP)).isTrue();
    assertThat(read(small, 10_000, 4096, Map.of(PathKind.PINNED, 9000)))
        .containsOnlyKeys(PathKind.PINNED);
    assertThat(small.drop(PathKind.PINNED)).as("others are left").isFalse();
  }

  @Test
  void aSinglePathIsAlwaysIt() {
    SmallReads small = new SmallReads(List.of(PathKind.DIRECT));
    assertThat(read(small, 1000, 512, Map.of(PathKind.DIRECT, 1)))
        .containsOnlyKeys(PathKind.DIRECT);
    assertThat(small.best(0)).isEqualTo(PathKind.DIRECT);
  }
}
