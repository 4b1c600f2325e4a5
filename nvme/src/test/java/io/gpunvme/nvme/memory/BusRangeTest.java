package io.gpunvme.nvme.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.DmaMappingException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class BusRangeTest {
  private final MemorySegment memory = Arena.ofAuto().allocate(4 * 4096, 4096);

  @Test
  void contiguousAddressesAreBasePlusOffset() {
    BusRange range = BusRange.contiguous(memory, 0xA000, () -> {});
    assertThat(range.busAddress(0)).isEqualTo(0xA000);
    assertThat(range.busAddress(16383)).isEqualTo(0xA000 + 16383);
    assertThat(range.contiguous(100, 5000)).isEqualTo(5000);
    assertThat(range.contiguous(16000, 5000)).isEqualTo(384);
    assertThat(range.size()).isEqualTo(16384);
    assertThat(range.memory()).isSameAs(memory);
  }

  @Test
  void scatteredAddressesGoByPage() {
    long[] addresses = {0x5000, 0x6000, 0x1000, 0x2000};
    BusRange range = BusRange.scattered(memory, addresses, () -> {});
    addresses[0] = 0;
    assertThat(range.busAddress(4)).isEqualTo(0x5004);
    assertThat(range.busAddress(4096)).isEqualTo(0x6000);
    assertThat(range.busAddress(8191)).isEqualTo(0x6FFF);
    assertThat(range.busAddress(8192)).isEqualTo(0x1000);
    assertThat(range.contiguous(0, 16384)).isEqualTo(8192);
    assertThat(range.contiguous(0, 8192)).isEqualTo(8192);
    assertThat(range.contiguous(4, 100)).isEqualTo(100);
    assertThat(range.contiguous(4, 4096)).isEqualTo(4096);
    assertThat(range.contiguous(8191, 100)).isEqualTo(1);
    assertThat(range.contiguous(8192, 100_000)).isEqualTo(8192);
  }

  @Test
  void remoteMemoryHasAddressesAndNothingToLookAt() {
    AtomicInteger unmapped = new AtomicInteger();
    BusRange range = BusRange.remote(16384, 0xA000, unmapped::incrementAndGet);
    assertThat(range.isRemote()).isTrue();
    assertThat(BusRange.contiguous(memory, 0xA000, () -> {}).isRemote()).isFalse();
    assertThat(range.size()).isEqualTo(16384);
    assertThat(range.busAddress(16383)).isEqualTo(0xA000 + 16383);
    assertThat(range.contiguous(16000, 5000)).isEqualTo(384);
    assertThatThrownBy(range::memory)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("16384");
    assertThatThrownBy(() -> range.busAddress(16384)).isInstanceOf(InvalidRequestException.class);
    range.close();
    assertThat(unmapped).hasValue(1);
    assertThatThrownBy(() -> range.busAddress(0)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> BusRange.remote(0, 0xA000, () -> {}))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> BusRange.remote(4096, 0xA800, () -> {}))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void remoteMemoryInPiecesHasAnAddressForEach() {
    AtomicInteger unmapped = new AtomicInteger();
    long[] addresses = {0x5000, 0x6000, 0x1000};
    BusRange range = BusRange.remote(3 * 4096, addresses, unmapped::incrementAndGet);
    addresses[0] = 0;
    assertThat(range.isRemote()).isTrue();
    assertThat(range.size()).isEqualTo(3 * 4096);
    assertThat(range.busAddress(8191)).isEqualTo(0x6FFF);
    assertThat(range.busAddress(8192)).isEqualTo(0x1000);
    assertThat(range.contiguous(0, 100_000)).isEqualTo(8192);
    assertThat(range.contiguous(8192, 100_000)).isEqualTo(4096);
    assertThatThrownBy(range::memory).isInstanceOf(IllegalStateException.class);
    range.close();
    range.close();
    assertThat(unmapped).hasValue(1);
    assertThatThrownBy(() -> BusRange.remote(3 * 4096, new long[2], () -> {}))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("2 addresses");
    assertThatThrownBy(() -> BusRange.remote(0, new long[1], () -> {}))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> BusRange.remote(4096, new long[] {0x1800}, () -> {}))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("1800");
  }

  @Test
  void aMapperReachesHostMemoryOnlyUnlessItSaysOtherwise() {
    BusMapper plain = m -> BusRange.contiguous(m, 0xA000, () -> {});
    RemoteMemory remote = new FakeGpu(plain).memory(memory);
    assertThatThrownBy(() -> plain.map(remote))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining(remote.name());
  }

  @Test
  void outsideIsRefused() {
    BusRange range = BusRange.contiguous(memory, 0xA000, () -> {});
    assertThatThrownBy(() -> range.busAddress(16384))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("16384");
    assertThatThrownBy(() -> range.busAddress(-1)).isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> BusRange.contiguous(memory, 0xA800, () -> {}))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> BusRange.scattered(memory, new long[3], () -> {}))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void closingUnmapsOnceAndEndsTheAddresses() {
    AtomicInteger unmapped = new AtomicInteger();
    BusRange range = BusRange.contiguous(memory, 0xA000, unmapped::incrementAndGet);
    range.close();
    assertThat(unmapped).hasValue(1);
    range.close();
    assertThat(unmapped).hasValue(1);
    assertThatThrownBy(() -> range.busAddress(0)).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void aBufferThatCannotBeMappedIsFreed() throws IOException {
    long before = openDmaMemory();
    assertThatThrownBy(
            () ->
                DmaBuffer.allocate(
                    m -> {
                      throw new DmaMappingException("limit reached");
                    },
                    4096))
        .isInstanceOf(DmaMappingException.class)
        .hasMessage("limit reached");
    assertThat(openDmaMemory()).isEqualTo(before);
    try (DmaBuffer buffer = DmaBuffer.allocate(new FakeBus(false), 1)) {
      assertThat(buffer.size()).isEqualTo(4096);
      assertThat(openDmaMemory()).as("this counts buffers").isEqualTo(before + 1);
    }
  }

  private static long openDmaMemory() throws IOException {
    try (Stream<Path> fds = Files.list(Path.of("/proc/self/fd"))) {
      return fds.filter(
              fd -> {
                try {
                  return Files.readSymbolicLink(fd).toString().contains("gpunvme-dma");
                } catch (IOException e) {
                  return false; // closed meanwhile
                }
              })
          .count();
    }
  }

  @Test
  void aBufferIsZeroedPageAlignedAndGoneAfterClose() {
    FakeBus bus = new FakeBus(false);
    DmaBuffer buffer = DmaBuffer.allocate(bus, 5000);
    MemorySegment segment = buffer.memory();
    assertThat(buffer.size()).isEqualTo(8192);
    assertThat(segment.address() % 4096).isZero();
    assertThat(segment.mismatch(MemorySegment.ofArray(new byte[8192]))).isEqualTo(-1);
    assertThat(buffer.busAddress(1)).isEqualTo(buffer.range().busAddress(0) + 1);
    buffer.close();
    buffer.close();
    assertThat(bus.mapped()).isZero();
    assertThat(segment.scope().isAlive()).isFalse();
  }
}
