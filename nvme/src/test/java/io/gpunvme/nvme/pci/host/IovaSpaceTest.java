package io.gpunvme.nvme.pci.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.pci.host.IovaSpace.Range;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class IovaSpaceTest {
  private static final long PAGE = 4096;
  private static final long GIB = 1L << 30;

  private static IovaSpace intel() {
    return new IovaSpace(
        List.of(new Range(0, 0xFEDF_FFFFL), new Range(0xFEF0_0000L, (1L << 39) - 1)), PAGE);
  }

  @Test
  void beginsAboveTheWindowsOfDevices() {
    IovaSpace space = intel();

    assertThat(space.take(PAGE, PAGE)).isEqualTo(4 * GIB);
    assertThat(space.addressBits()).isEqualTo(39);
  }

  @Test
  void leavesAPageBetweenRuns() {
    IovaSpace space = intel();
    long first = space.take(3 * PAGE, PAGE);

    assertThat(space.take(PAGE, PAGE)).isEqualTo(first + 4 * PAGE);
  }

  @Test
  void fillsTheFirstHoleThatFits() {
    IovaSpace space = intel();
    long a = space.take(2 * PAGE, PAGE);
    long b = space.take(4 * PAGE, PAGE);
    long c = space.take(PAGE, PAGE);
    space.release(b);

    assertThat(space.take(5 * PAGE, PAGE)).isGreaterThan(c);
    assertThat(space.take(3 * PAGE, PAGE)).isEqualTo(b);
    assertThat(space.count()).isEqualTo(4);
    assertThat(a).isEqualTo(4 * GIB);
  }

  @Test
  void alignsAndWalksPastHolesThatAreTooSmallThen() {
    IovaSpace space = intel();
    space.take(PAGE, PAGE);

    long large = space.take(IovaSpace.LARGE_PAGE, IovaSpace.LARGE_PAGE);
    assertThat(large).isEqualTo(4 * GIB + IovaSpace.LARGE_PAGE);
    assertThat(space.take(PAGE, PAGE)).isEqualTo(4 * GIB + 2 * PAGE);
  }

  @Test
  void goesBelowWhenAboveThereIsNothing() {
    IovaSpace narrow = new IovaSpace(List.of(new Range(0, 0xFFFF_FFFFL)), PAGE);

    assertThat(narrow.take(PAGE, PAGE)).isEqualTo(1L << 20);
    assertThat(narrow.addressBits()).isEqualTo(32);
  }

  @Test
  void saysWhenNothingIsFree() {
    IovaSpace small = new IovaSpace(List.of(new Range(0, (1L << 20) + 3 * PAGE - 1)), PAGE);
    small.take(PAGE, PAGE);
    small.take(PAGE, PAGE);

    assertThatThrownBy(() -> small.take(PAGE, PAGE))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("4096 bytes")
        .hasMessageContaining("21-bit")
        .hasMessageContaining("2 ranges are mapped");
  }

  @Test
  void aFull64BitSpaceDoesNotOverflow() {
    IovaSpace all = new IovaSpace(List.of(new Range(0, -1L)), PAGE);

    assertThat(all.addressBits()).isEqualTo(64);
    long most = (1L << 62) - 4 * GIB;
    assertThat(all.take(most, PAGE)).isEqualTo(4 * GIB);
    assertThat(all.take(PAGE, PAGE)).isEqualTo(1L << 20);
    assertThatThrownBy(() -> all.take(1L << 62, PAGE)).isInstanceOf(DmaMappingException.class);
  }

  @Test
  void rangesThatTheProcessorCallsNegativeAreNotUsed() {
    IovaSpace space =
        new IovaSpace(List.of(new Range(0, 0x7FFF_FFFFL), new Range(Long.MIN_VALUE, -1L)), PAGE);

    assertThat(space.take(PAGE, PAGE)).isEqualTo(1L << 20);
    assertThatThrownBy(() -> space.take(4 * GIB, PAGE)).isInstanceOf(DmaMappingException.class);
  }

  @Test
  void refusesMistakes() {
    IovaSpace space = intel();

    assertThatIllegalArgumentException().isThrownBy(() -> space.take(PAGE + 1, PAGE));
    assertThatIllegalArgumentException().isThrownBy(() -> space.take(0, PAGE));
    assertThatIllegalArgumentException().isThrownBy(() -> space.take(PAGE, 3));
    assertThatIllegalArgumentException().isThrownBy(() -> space.release(4 * GIB));
    assertThatIllegalArgumentException().isThrownBy(() -> new Range(2, 1));
    assertThatIllegalArgumentException().isThrownBy(() -> new IovaSpace(List.of(), 5));
  }

  @Test
  void suitsLargePagesWhereTheMemoryDoes() {
    assertThat(IovaSpace.suitableAlignment(0x7F00_0000_0000L, 4 << 20)).isEqualTo(2 << 20);
    assertThat(IovaSpace.suitableAlignment(0x7F00_0001_0000L, 4 << 20)).isEqualTo(1 << 16);
    assertThat(IovaSpace.suitableAlignment(0x7F00_0000_0000L, 3 * PAGE)).isEqualTo(2 * PAGE);
  }

  /** Whatever is taken and given back: runs stay apart, aligned, and inside the ranges. */
  @Test
  void randomHistoriesNeverOverlap() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    SplittableRandom random = new SplittableRandom(seed);
    for (int round = 0; round < 20; round++) {
      List<Range> ranges = new ArrayList<>();
      long at = random.nextLong(1L << 21) & -PAGE;
      for (int i = 0; i <= random.nextInt(3); i++) {
        long size = (1 + random.nextLong(300)) * PAGE;
        ranges.add(new Range(at, at + size - 1));
        at += size + (random.nextBoolean() ? 4 * GIB : PAGE);
      }
      history(new IovaSpace(ranges, PAGE), ranges, random, "-Dgpunvme.seed=" + seed);
    }
  }

  private static void history(
      IovaSpace space, List<Range> ranges, SplittableRandom random, String seed) {
    List<long[]> taken = new ArrayList<>();
    for (int step = 0; step < 300; step++) {
      if (!taken.isEmpty() && random.nextInt(3) == 0) {
        space.release(taken.remove(random.nextInt(taken.size()))[0]);
        continue;
      }
      long bytes = (1 + random.nextLong(40)) * PAGE;
      long alignment = PAGE << random.nextInt(6);
      long first = space.takeIfFree(bytes, alignment);
      if (first < 0) {
        continue;
      }
      assertThat(first % alignment).as(seed).isZero();
      assertThat(first).as(seed).isGreaterThanOrEqualTo(1L << 20);
      assertThat(ranges)
          .as(seed)
          .anyMatch(r -> r.first() <= first && first + bytes - 1 <= r.last());
      assertThat(taken)
          .as(seed)
          .noneMatch(t -> first < t[0] + t[1] + PAGE && t[0] < first + bytes + PAGE);
      taken.add(new long[] {first, bytes});
    }
    assertThat(space.count()).as(seed).isEqualTo(taken.size());
    taken.forEach(t -> space.release(t[0]));
    assertThat(space.count()).isZero();
  }
}
