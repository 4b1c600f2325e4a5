package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.FakeGpu;
import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.nvme.memory.RemotePort;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The bus by itself. */
class DmaSpaceTest {
  private int quiesced;

  private DmaSpace space(int bits) {
    DmaSpace dma = new DmaSpace(bits, 42, region -> quiesced++);
    dma.busMaster(true);
    return dma;
  }

  @ParameterizedTest
  @ValueSource(ints = {32, 40, 47, 48, 57, 64})
  void addressesFitAndAreNoPointersAndHaveGaps(int bits) {
    DmaSpace dma = space(bits);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment memory = arena.allocate(64 * 4096, 4096);
      List<long[]> ranges = new ArrayList<>();
      for (int i = 0; i < 200; i++) {
        long bytes = (1 + i % 64) * 4096L;
        BusRange range = dma.map(memory.asSlice(0, bytes));
        long base = range.busAddress(0);
        assertThat(base % 4096).isZero();
        assertThat(base).isGreaterThanOrEqualTo(1 << 20).isNotEqualTo(memory.address());
        assertThat(bits >= 63 || base + bytes <= 1L << bits).isTrue();
        for (long[] other : ranges) {
          assertThat(base > other[1] || base + bytes < other[0]).as("gap").isTrue();
        }
        ranges.add(new long[] {base, base + bytes});
      }
      assertThat(dma.regionCount()).isEqualTo(200);
    }
  }

  @Test
  void alignmentIsKeptUpToTheLargestUsualPage() {
    DmaSpace dma = space(48);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment memory = arena.allocate(1 << 20, 1 << 20);
      for (int i = 0; i < 50; i++) {
        assertThat(dma.map(memory).busAddress(0) % 65536).isZero();
        assertThat(dma.map(memory.asSlice(16384)).busAddress(0) % 16384).isZero();
      }
    }
  }

  @Test
  void onlyWholeMappedRangesAreFound() {
    DmaSpace dma = space(48);
    try (Arena arena = Arena.ofShared()) {
      BusRange range = dma.map(arena.allocate(8192, 4096));
      long base = range.busAddress(0);
      DmaRegion r = dma.find(base + 100, 8092);
      assertThat(r).isNotNull();
      assertThat(r.offset(base + 100)).isEqualTo(100);
      assertThat(dma.refusals()).isZero();
      long[][] wrong = {
        {base - 1, 1},
        {base, 8193},
        {base + 8191, 2},
        {base + 8192, 1},
        {0, 1},
        {-1, 1},
        {-1, 2},
        {base + 1, Long.MAX_VALUE},
        {Long.MIN_VALUE, 1},
        {base + (1L << 32), 1}
      };
      for (long[] access : wrong) {
        assertThat(dma.find(access[0], access[1])).isNull();
      }
      assertThat(dma.refusals()).isEqualTo(wrong.length);
      int generation = dma.generation();
      range.close();
      assertThat(quiesced).isEqualTo(1);
      assertThat(dma.find(base, 1)).isNull();
      assertThat(dma.generation()).isNotEqualTo(generation);
      range.close();
      assertThat(quiesced).isEqualTo(1);
    }
  }

  @Test
  void remoteMemoryIsFoundButNotTouched() {
    DmaSpace dma = space(48);
    MemorySegment memory = Arena.ofAuto().allocate(4 * 4096, 4096);
    FakeGpu gpu = new FakeGpu(m -> dma.map(m));
    BusRange range = dma.map(gpu.memory(memory));
    long base = range.busAddress(0);
    assertThat(range.isRemote()).isTrue();
    assertThat(base % 65536).isZero();
    DmaRegion r = dma.find(base + 100, 16284);
    assertThat(r).isNotNull();
    assertThat(r.isRemote()).isTrue();
    assertThat(r.memory().byteSize()).isZero();
    assertThat(dma.find(base + 16383, 2)).isNull();
    assertThat(dma.refusals()).isEqualTo(1);
    assertThat(dma.findHost(base, 1)).isNull();
    assertThat(dma.refusals()).isEqualTo(2);
    assertThat(dma.isMapped(r)).isTrue();
    assertThat(dma.isReachable(r)).isTrue();
    dma.busMaster(false);
    assertThat(dma.isReachable(r)).isFalse();
    dma.busMaster(true);
    BusRange other = dma.map(gpu.memory(memory));
    range.close();
    assertThat(quiesced).isEqualTo(1);
    assertThat(dma.isMapped(r)).isFalse();
    assertThat(dma.isReachable(r)).isFalse();
    assertThat(dma.find(base, 1)).isNull();
    assertThat(dma.find(other.busAddress(0), 16384)).isNotNull();
    assertThat(dma.findHost(dma.map(memory).busAddress(0), 1)).isNotNull();
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 1, 4095, 4097, -4096})
  void remoteMemoryComesInPages(long size) {
    RemoteMemory odd =
        new RemoteMemory() {
          @Override
          public String name() {
            return "odd memory";
          }

          @Override
          public long size() {
            return size;
          }

          @Override
          public RemotePort openPort(RemotePort.Use use) {
            throw new AssertionError("nobody may reach it");
          }
        };
    assertThatThrownBy(() -> space(48).map(odd))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("odd memory");
  }

  @Test
  void withoutBusMasterOnlyOwnMemoryIsReached() {
    DmaSpace dma = space(48);
    try (Arena arena = Arena.ofShared()) {
      BusRange range = dma.map(arena.allocate(4096, 4096));
      long own = range.busAddress(0) + (1L << 40);
      assertThat(dma.place(new DmaRegion(own, 4096, arena.allocate(4096, 4096), true))).isTrue();
      int generation = dma.generation();
      dma.busMaster(false);
      assertThat(dma.generation()).isNotEqualTo(generation);
      assertThat(dma.find(range.busAddress(0), 1)).isNull();
      assertThat(dma.find(own, 4096)).isNotNull();
      dma.busMaster(true);
      assertThat(dma.find(range.busAddress(0), 1)).isNotNull();
    }
  }

  @Test
  void placesMustBeFree() {
    DmaSpace dma = space(48);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment memory = arena.allocate(8192, 4096);
      long base = dma.map(memory).busAddress(0);
      for (long taken : new long[] {base - 4096, base, base + 4096, 1L << 48, -8192}) {
        assertThat(dma.place(new DmaRegion(taken, 8192, memory, true))).isFalse();
      }
      assertThat(dma.place(new DmaRegion(base - 8192, 8192, memory, true))).isTrue();
      assertThat(dma.place(new DmaRegion(base + 8192, 8192, memory, true))).isTrue();
      assertThat(dma.find(base - 1, 1)).isNotNull();
    }
  }

  @Test
  void memoryMustBeMappable() {
    DmaSpace dma = space(48);
    try (Arena shared = Arena.ofShared();
        Arena confined = Arena.ofConfined()) {
      MemorySegment good = shared.allocate(8192, 4096);
      MemorySegment[] bad = {
        good.asSlice(8, 4096),
        good.asSlice(0, 100),
        good.asSlice(0, 0),
        good.asReadOnly(),
        MemorySegment.ofArray(new long[512]),
        confined.allocate(4096, 4096)
      };
      for (MemorySegment m : bad) {
        assertThatThrownBy(() -> dma.map(m)).isInstanceOf(DmaMappingException.class);
      }
      assertThat(dma.regionCount()).isZero();
    }
  }

  @Test
  @SuppressWarnings("restricted") // memory that is never touched
  void aSmallSpaceFillsUpAndIsReused() {
    DmaSpace dma = space(32);
    MemorySegment quarter = MemorySegment.ofAddress(1L << 40).reinterpret(1L << 30);
    List<BusRange> ranges = new ArrayList<>();
    assertThatThrownBy(
            () -> {
              while (true) {
                ranges.add(dma.map(quarter));
              }
            })
        .isInstanceOf(DmaMappingException.class);
    assertThat(ranges).hasSizeBetween(2, 3);
    for (int i = 0; i < 100; i++) {
      ranges.remove(0).close();
      ranges.add(dma.map(quarter));
    }
  }

  @Test
  void lookupsAgreeWithAModel() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    Random random = new Random(seed);
    DmaSpace dma = space(48);
    Map<Long, BusRange> model = new HashMap<>();
    try (Arena arena = Arena.ofShared()) {
      MemorySegment memory = arena.allocate(16 * 4096, 4096);
      for (int i = 0; i < 3000; i++) {
        if (model.size() < 40 && random.nextBoolean()) {
          BusRange r = dma.map(memory.asSlice(0, (1 + random.nextInt(16)) * 4096L));
          model.put(r.busAddress(0), r);
        } else if (!model.isEmpty()) {
          Long key = model.keySet().stream().skip(random.nextInt(model.size())).findFirst().get();
          BusRange r = model.get(key);
          long at = random.nextLong(-4096, r.size() + 4096);
          long n = 1 + random.nextLong(8192);
          boolean inside = at >= 0 && at + n <= r.size();
          assertThat(dma.find(key + at, n) != null)
              .as("seed %d step %d", seed, i)
              .isEqualTo(inside);
          if (random.nextInt(4) == 0) {
            model.remove(key).close();
          }
        }
      }
    }
  }

  @Test
  void aClosedSpaceMapsNothing() {
    DmaSpace dma = space(48);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment memory = arena.allocate(4096, 4096);
      BusRange range = dma.map(memory);
      dma.close();
      assertThat(dma.find(range.busAddress(0), 1)).isNull();
      assertThatThrownBy(() -> dma.map(memory)).isInstanceOf(DmaMappingException.class);
      range.close();
    }
  }
}
