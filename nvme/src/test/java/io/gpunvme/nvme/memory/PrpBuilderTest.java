package io.gpunvme.nvme.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.DmaMappingException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PrpBuilderTest {
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

  private static PrpBuilder builder(FakeBus bus, MemorySegment lists, int slots, long max) {
    return new PrpBuilder(bus.map(lists), 0, slots, PAGE, max);
  }

  /** Follows the data pointer as Base 2.0, 4.1.1 says a controller does; (offset, length) pairs. */
  private static List<long[]> walk(FakeBus bus, PrpBuilder prp, long length) {
    List<long[]> parts = new ArrayList<>();
    long first = Math.min(length, PAGE - (prp.dptr1() & (PAGE - 1)));
    parts.add(new long[] {bus.offsetOf(prp.dptr1()), first});
    long rest = length - first;
    if (rest == 0) {
      assertThat(prp.dptr2()).as("unused PRP2").isZero();
      return parts;
    }
    if (rest <= PAGE) {
      assertThat(prp.dptr2() % PAGE).isZero();
      parts.add(new long[] {bus.offsetOf(prp.dptr2()), rest});
      return parts;
    }
    long entry = prp.dptr2();
    assertThat(entry % 8).isZero();
    while (rest > 0) {
      long value = bus.readLong(entry);
      boolean lastInPage = (entry + 8) % PAGE == 0;
      if (lastInPage && rest > PAGE) {
        entry = value;
        continue;
      }
      assertThat(value % PAGE).as("list entries are page aligned").isZero();
      long step = Math.min(PAGE, rest);
      parts.add(new long[] {bus.offsetOf(value), step});
      rest -= step;
      entry += 8;
    }
    return parts;
  }

  private static void assertCovers(List<long[]> parts, long offset, long length) {
    long at = offset;
    for (long[] part : parts) {
      assertThat(part[0]).isEqualTo(at);
      at += part[1];
    }
    assertThat(at).isEqualTo(offset + length);
  }

  @ParameterizedTest(name = "offset {0}, {1} bytes")
  @CsvSource({
    "0, 1",
    "0, 512",
    "0, 4096",
    "4, 4092",
    "4, 4096",
    "4092, 4",
    "4092, 512",
    "0, 8192",
    "512, 8192",
    "0, 8196",
    "0, 12288",
    "2048, 12288",
    // 512 list entries fill a page exactly; 513 need a chained one; then two and three pages
    "0, 2101248",
    "0, 2101252",
    "4, 2101248",
    "0, 2105344",
    "0, 4190208",
    "0, 4194304",
    "4092, 4194304"
  })
  void aContiguousBufferIsCoveredExactly(long offset, long length) {
    FakeBus bus = new FakeBus(false);
    PrpBuilder prp = builder(bus, pages(64), 4, MAX);
    BusRange data = bus.map(pages(1026));
    for (int slot = 0; slot < 4; slot++) {
      prp.build(slot, data, offset, length);
      assertCovers(walk(bus, prp, length), offset, length);
    }
  }

  @ParameterizedTest(name = "offset {0}, {1} bytes")
  @CsvSource({"0, 4096", "8, 8192", "4, 65536", "0, 2101252", "2048, 4194304"})
  void aScatteredBufferIsCoveredExactly(long offset, long length) {
    FakeBus bus = new FakeBus(true);
    PrpBuilder prp = builder(bus, pages(64), 2, MAX);
    BusRange data = bus.map(pages(1026));
    prp.build(1, data, offset, length);
    assertCovers(walk(bus, prp, length), offset, length);
  }

  @Test
  void everyOffsetAndLengthAroundPageBoundaries() {
    FakeBus bus = new FakeBus(true);
    PrpBuilder prp = builder(bus, pages(4), 3, 5 * PAGE);
    BusRange data = bus.map(pages(8));
    for (long offset = 0; offset < 2 * PAGE; offset += 508) {
      for (long length = 4; length <= 5 * PAGE; length += 404) {
        prp.build(2, data, offset, length);
        assertCovers(walk(bus, prp, length), offset, length);
      }
    }
  }

  @Test
  void slotsDoNotShareListMemory() {
    FakeBus bus = new FakeBus(false);
    PrpBuilder prp = builder(bus, pages(4), 4, 64L << 10);
    BusRange data = bus.map(pages(64));
    prp.build(0, data, 0, 64L << 10);
    long list0 = prp.dptr2();
    long before = bus.readLong(list0);
    prp.build(1, data, 8L * PAGE, 64L << 10);
    assertThat(bus.readLong(list0)).isEqualTo(before);
    assertThat(prp.dptr2() - list0).isEqualTo(prp.bytesPerSlot());
    assertThat(prp.bytesPerSlot()).isEqualTo(128);
    assertThat(prp.psdt()).isZero();
  }

  @ParameterizedTest(name = "{0} bytes -> {1} list bytes")
  @CsvSource({
    "4096, 8",
    "8192, 16",
    "12288, 32",
    "65536, 128",
    "131072, 256",
    "2097152, 4096",
    "2101248, 8192",
    "4190208, 8192",
    "4186112, 8192",
    "4194304, 12288"
  })
  void listMemoryPerSlot(long max, long expected) {
    assertThat(PrpBuilder.bytesPerSlot(PAGE, max)).isEqualTo(expected);
  }

  @Test
  void listMemoryIsRoundedToPages() {
    assertThat(PrpBuilder.memoryBytes(3, PAGE, 65536)).isEqualTo(PAGE);
    assertThat(PrpBuilder.memoryBytes(33, PAGE, 65536)).isEqualTo(2 * PAGE);
    assertThat(PrpBuilder.memoryBytes(2, PAGE, MAX)).isEqualTo(24576);
  }

  @Test
  void refusesWhatAPrpCannotSay() {
    FakeBus bus = new FakeBus(false);
    PrpBuilder prp = builder(bus, pages(4), 1, 65536);
    BusRange data = bus.map(pages(32));
    assertThatThrownBy(() -> prp.build(0, data, 2, 512))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("offset 2")
        .hasMessageContaining("4-byte aligned");
    assertThatThrownBy(() -> prp.build(0, data, 0, 65537))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("at most 65536");
    assertThatThrownBy(() -> prp.build(0, data, 32L * PAGE - 4, 8))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("not inside the buffer");
    assertThatThrownBy(() -> prp.build(0, data, -4, 8)).isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> prp.build(0, data, 0, 0)).isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> prp.build(0, data, Long.MAX_VALUE - 3, 8))
        .isInstanceOf(InvalidRequestException.class);
    prp.build(0, data, 32L * PAGE - 4, 4);
    assertThat(prp.dptr1()).isEqualTo(data.busAddress(32L * PAGE - 4));
  }

  @Test
  void aControllerPageLargerThanTheScatteredPiecesIsRefused() {
    FakeBus bus = new FakeBus(false);
    BusRange lists = bus.map(pages(16));
    PrpBuilder prp = new PrpBuilder(lists, 0, 1, 16384, 1 << 20);
    MemorySegment memory = pages(16);
    long[] addresses = new long[16];
    for (int i = 0; i < 16; i++) {
      addresses[i] = 0x10_0000L + (i < 8 ? i : 2L * i) * PAGE;
    }
    BusRange data = BusRange.scattered(memory, addresses, () -> {});
    prp.build(0, data, 0, 16384);
    assertThatThrownBy(() -> prp.build(0, data, 0, 65536))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("16384");
    assertThatThrownBy(() -> prp.build(0, data, 8L * PAGE, 16384))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("scattered");
    assertThatThrownBy(() -> prp.build(0, data, 4L * PAGE, 32768))
        .as("the page that PRP2 would name is scattered")
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("scattered");
  }

  @Test
  void aRunThatStartsInsideALargerControllerPageIsRefused() {
    FakeBus bus = new FakeBus(false);
    PrpBuilder prp = new PrpBuilder(bus.map(pages(16)), 0, 1, 16384, 1 << 20);
    long[] addresses = new long[16];
    for (int i = 0; i < 16; i++) {
      // Two runs of eight pages; the second starts 4 KiB into a page of 16 KiB.
      addresses[i] = 0x10_0000L + i * PAGE + (i < 8 ? 0 : 0x10_1000L);
    }
    BusRange data = BusRange.scattered(pages(16), addresses, () -> {});
    assertThatThrownBy(() -> prp.build(0, data, 0, 65536))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("16384");
  }

  @Test
  void nothingIsWrittenBehindTheList() {
    FakeBus bus = new FakeBus(false);
    PrpBuilder prp = builder(bus, pages(4), 1, 64L << 10);
    BusRange data = bus.map(pages(64));
    prp.build(0, data, 0, 9L * PAGE);
    assertThat(bus.readLong(prp.dptr2() + 7 * 8)).isNotZero();
    assertThat(bus.readLong(prp.dptr2() + 8 * 8)).isZero();
  }

  @Test
  void listPagesMustBeContiguousOnTheBus() {
    MemorySegment memory = pages(4);
    BusRange range =
        BusRange.scattered(memory, new long[] {0x1000, 0x9000, 0x3000, 0x4000}, () -> {});
    assertThatThrownBy(() -> new PrpBuilder(range, 0, 1, 16384, 16384))
        .isInstanceOf(DmaMappingException.class);
  }
}
