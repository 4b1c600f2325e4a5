package io.gpunvme.nvme.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SglBuilderTest {
  private static final int PAGE = 4096;
  private static final long MAX = 4L << 20;

  private final Arena arena = Arena.ofConfined();

  @AfterEach
  void free() {
    arena.close();
  }

  private MemorySegment pages(long count) {
    return arena.allocate(count * PAGE, PAGE);
  }

  private static SglBuilder builder(FakeBus bus, MemorySegment lists, int slots) {
    return new SglBuilder(bus.map(lists), 0, slots, PAGE, MAX);
  }

  private static int type(long high) {
    return (int) (high >>> 60);
  }

  private static long length(long high) {
    return high & 0xFFFF_FFFFL;
  }

  @Test
  void oneRunIsOneDescriptorInTheCommand() {
    FakeBus bus = new FakeBus(false);
    SglBuilder sgl = builder(bus, pages(40), 2);
    BusRange data = bus.map(pages(1024));
    sgl.build(1, data, 12, 1 << 20);
    assertThat(sgl.psdt()).isEqualTo(1);
    assertThat(sgl.dptr1()).isEqualTo(data.busAddress(12));
    assertThat(type(sgl.dptr2())).isZero();
    assertThat(length(sgl.dptr2())).isEqualTo(1 << 20);
  }

  @ParameterizedTest(name = "offset {0}, {1} bytes")
  @CsvSource({"0, 12288", "100, 65536", "4, 1572864", "0, 1576960", "0, 4194304", "4095, 4194304"})
  void scatteredRunsAreCoveredBySegmentsOfAPage(long offset, long bytes) {
    FakeBus bus = new FakeBus(true);
    SglBuilder sgl = builder(bus, pages(40), 2);
    BusRange data = bus.map(pages(1026));
    sgl.build(1, data, offset, bytes);
    long pointer = sgl.dptr1();
    long high = sgl.dptr2();
    long at = offset;
    for (boolean last = false; !last; ) {
      assertThat(type(high)).isIn(2, 3);
      last = type(high) == 3;
      long descriptors = length(high) / 16;
      assertThat(length(high)).isEqualTo(descriptors * 16).isLessThanOrEqualTo(PAGE);
      for (long i = 0; i < descriptors; i++) {
        long address = bus.readLong(pointer + i * 16);
        long word = bus.readLong(pointer + i * 16 + 8);
        if (!last && i == descriptors - 1) {
          pointer = address;
          high = word;
          break;
        }
        assertThat(type(word)).isZero();
        assertThat(bus.offsetOf(address)).isEqualTo(at);
        at += length(word);
      }
    }
    assertThat(at).isEqualTo(offset + bytes);
  }

  @Test
  void aFullSegmentIsTheLastOneAndOneMoreRunNeedsAnother() {
    FakeBus bus = new FakeBus(true);
    SglBuilder sgl = builder(bus, pages(40), 2);
    BusRange data = bus.map(pages(1026));
    // In the scattered bus every third page follows its neighbour: 384 pages are 256 runs.
    sgl.build(0, data, 0, 384L * PAGE);
    assertThat(type(sgl.dptr2())).isEqualTo(3);
    assertThat(length(sgl.dptr2())).isEqualTo(PAGE);
    assertThat(type(bus.readLong(sgl.dptr1() + PAGE - 8))).isZero();
    sgl.build(0, data, 0, 385L * PAGE);
    assertThat(type(sgl.dptr2())).isEqualTo(2);
    assertThat(length(sgl.dptr2())).isEqualTo(PAGE);
    long next = bus.readLong(sgl.dptr1() + PAGE - 8);
    assertThat(type(next)).isEqualTo(3);
    assertThat(length(next)).isEqualTo(2 * 16);
  }

  @Test
  void segmentsOfDifferentSlotsAreApart() {
    FakeBus bus = new FakeBus(true);
    SglBuilder sgl = builder(bus, pages(40), 2);
    BusRange data = bus.map(pages(64));
    sgl.build(0, data, 0, 64 * PAGE);
    long first = sgl.dptr1();
    sgl.build(1, data, 0, 64 * PAGE);
    assertThat(bus.offsetOf(sgl.dptr1()) - bus.offsetOf(first)).isEqualTo(sgl.bytesPerSlot());
    assertThat(SglBuilder.memoryBytes(2, PAGE, MAX)).isEqualTo(2 * sgl.bytesPerSlot());
    assertThat(sgl.bytesPerSlot()).isEqualTo(5 * PAGE);
  }

  @Test
  void boundsAreChecked() {
    FakeBus bus = new FakeBus(false);
    SglBuilder sgl = builder(bus, pages(40), 2);
    BusRange data = bus.map(pages(4));
    assertThatThrownBy(() -> sgl.build(0, data, 0, 4 * PAGE + 1))
        .isInstanceOf(InvalidRequestException.class);
  }
}
