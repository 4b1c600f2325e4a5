package io.gpunvme.nvme.pci.kmod;

import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** What the module returned is checked before a controller is given any of it. */
class BusRunsTest {
  private static final long TOP = Long.MIN_VALUE; // 2^63, as an address

  private static MemorySegment array(long... runs) {
    MemorySegment array = Arena.ofAuto().allocate(Math.max(16, runs.length * 8L), 8);
    for (int i = 0; i < runs.length; i++) {
      array.set(JAVA_LONG_UNALIGNED, i * 8L, runs[i]);
    }
    return array;
  }

  private static BusRuns read(long covered, int bits, long... runs) {
    return BusRuns.read(array(runs), runs.length / 2, covered, bits);
  }

  private static void assertRefused(String why, long covered, int bits, long... runs) {
    assertThatThrownBy(() -> read(covered, bits, runs))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("make no sense")
        .hasMessageContaining(why);
  }

  @Test
  void oneRunIsContiguous() {
    MemorySegment memory = Arena.ofAuto().allocate(8192, 4096);
    int[] unmapped = {0};
    BusRange range = read(8192, 48, 0x12345000, 8192).range(memory, () -> unmapped[0]++);
    assertThat(range.busAddress(8191)).isEqualTo(0x12345000L + 8191);
    assertThat(range.contiguous(0, 10_000)).isEqualTo(8192);
    assertThat(range.memory()).isSameAs(memory);
    range.close();
    assertThat(unmapped).containsExactly(1);
  }

  @Test
  void severalRunsAreScattered() {
    MemorySegment memory = Arena.ofAuto().allocate(4 * 4096, 4096);
    BusRange range =
        read(4 * 4096, 48, 0x9000, 4096, 0x4000, 8192, 0x6000, 4096).range(memory, () -> {});
    assertThat(range.busAddress(0)).isEqualTo(0x9000);
    assertThat(range.busAddress(4096)).isEqualTo(0x4000);
    assertThat(range.busAddress(8192 + 5)).isEqualTo(0x5005);
    assertThat(range.contiguous(4096, 100_000)).isEqualTo(3 * 4096);
  }

  @Test
  void partOfARemoteRange() {
    BusRuns runs = read(6 * 4096, 48, 0x9000, 4096, 0x4000, 8192, 0x10000, 3 * 4096);
    BusRange inside = runs.remote(8192, 4096, () -> {});
    assertThat(inside.isRemote()).isTrue();
    assertThat(inside.size()).isEqualTo(4096);
    assertThat(inside.busAddress(1)).isEqualTo(0x5001);
    BusRange across = runs.remote(8192, 3 * 4096, () -> {});
    assertThat(across.busAddress(0)).isEqualTo(0x5000);
    assertThat(across.busAddress(4096)).isEqualTo(0x10000);
    assertThat(across.busAddress(8192)).isEqualTo(0x11000);
    assertThat(across.contiguous(0, 100_000)).isEqualTo(4096);
    BusRange whole = runs.remote(0, 6 * 4096, () -> {});
    assertThat(whole.busAddress(5 * 4096)).isEqualTo(0x12000);
    BusRange end = runs.remote(3 * 4096, 3 * 4096, () -> {});
    assertThat(end.contiguous(0, 100_000)).isEqualTo(3 * 4096);
  }

  @Test
  void randomRunsGiveEveryPageItsAddress() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    Random random = new Random(seed);
    for (int round = 0; round < 200; round++) {
      int count = 1 + random.nextInt(12);
      long[] runs = new long[2 * count];
      long[] pages = new long[count * 8];
      int total = 0;
      for (int i = 0; i < count; i++) {
        int length = 1 + random.nextInt(8);
        runs[2 * i] = random.nextLong(1L << 30) << 12;
        runs[2 * i + 1] = length * 4096L;
        for (int k = 0; k < length; k++) {
          pages[total++] = runs[2 * i] + k * 4096L;
        }
      }
      BusRuns read = read(total * 4096L, 44, runs);
      int first = random.nextInt(total);
      int some = 1 + random.nextInt(total - first);
      BusRange part = read.remote(first * 4096L, some * 4096L, () -> {});
      for (int k = 0; k < some; k++) {
        assertThat(part.busAddress(k * 4096L)).as("seed " + seed).isEqualTo(pages[first + k]);
      }
    }
  }

  @Test
  void aCountThatDoesNotFitIsRefused() {
    MemorySegment array = array(0x1000, 4096, 0x2000, 4096);
    for (long count : new long[] {0, 3, 0xFFFF_FFFFL}) {
      assertThatThrownBy(() -> BusRuns.read(array, count, 8192, 48))
          .isInstanceOf(DmaMappingException.class)
          .hasMessageContaining(count + " runs in an array of 2");
    }
  }

  @Test
  void onlyWholePages() {
    assertRefused("not made of pages", 4096, 48, 0x1800, 4096);
    assertRefused("not made of pages", 4096, 48, 0x1001, 4096);
    assertRefused("not made of pages", 4096, 48, 0x1000, 4095);
    assertRefused("not made of pages", 8192, 48, 0x1000, 4096, 0x2000, 1);
  }

  @Test
  void exactlyTheRangeIsCovered() {
    assertRefused("leave 1000h of 2000h", 8192, 48, 0x1000, 4096);
    assertRefused("run 0 has 3000h bytes where 2000h are left", 8192, 48, 0x1000, 3 * 4096);
    assertRefused("run 1 has 2000h", 8192, 48, 0x1000, 4096, 0x5000, 8192);
    assertRefused("run 1 has 0h", 4096, 48, 0x1000, 4096, 0x5000, 0);
    assertRefused("run 0 has 0h", 4096, 48, 0x1000, 0, 0x5000, 4096);
    // Two lengths whose sum wraps to the right one.
    assertRefused("run 0", 4096, 48, 0x1000, TOP, 0x5000, TOP + 4096);
    assertRefused("run 0", 4096, 48, 0x1000, -4096, 0x5000, 8192);
  }

  @Test
  void addressesStayWithinTheirBits() {
    read(4096, 32, 0xFFFF_F000L, 4096);
    assertRefused("more than 32 bits", 4096, 32, 0x1_0000_0000L, 4096);
    assertRefused("more than 32 bits", 8192, 32, 0xFFFF_F000L, 8192);
    assertRefused("more than 48 bits", 4096, 48, TOP, 4096);
    read(4096, 64, -4096, 4096);
    read(4096, 64, TOP, 4096);
    assertRefused("more than 64 bits", 8192, 64, -4096, 8192);
  }
}
