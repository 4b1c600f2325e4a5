package io.gpunvme.nvme.pci.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.ffi.Posix;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.HostMemory;
import io.gpunvme.nvme.memory.PeerMemory;
import io.gpunvme.nvme.pci.HostPaths;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PhysicalMemoryTest {
  private static final long PRESENT = 1L << 63;

  @TempDir Path folder;

  @Test
  void everyPageHasItsFrame() {
    long[] entries = {PRESENT | 0x1_2345, PRESENT | 1L << 55 | 7};

    assertThat(PhysicalMemory.granules(2, 4096, i -> entries[(int) i]))
        .containsExactly(0x1_2345_000L, 0x7000L);
    assertThat(PhysicalMemory.granules(1, 16384, i -> entries[1]))
        .containsExactly(0x1C000L, 0x1D000L, 0x1E000L, 0x1F000L);
  }

  @Test
  void saysWhenTheKernelHidesFrames() {
    assertThatThrownBy(() -> PhysicalMemory.granules(1, 4096, i -> PRESENT))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("root");
    assertThatThrownBy(() -> PhysicalMemory.granules(1, 4096, i -> 0))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("not in memory");
  }

  @Test
  void findsTheFramesOfRealMemory() {
    PhysicalMemory physical = new PhysicalMemory(HostPaths.host());
    try (HostMemory memory = HostMemory.shared(8L * Posix.pageSize())) {
      BusRange range;
      try {
        range = physical.map(memory.segment());
      } catch (DmaMappingException e) {
        Assumptions.abort(e.getMessage());
        return;
      }
      try (BusRange mapped = range;
          BusRange again = physical.map(memory.segment())) {
        for (long at = 0; at < memory.segment().byteSize(); at += BusRange.GRANULE) {
          assertThat(mapped.busAddress(at)).isPositive().isEqualTo(again.busAddress(at));
          assertThat(mapped.busAddress(at + 5)).isEqualTo(mapped.busAddress(at) + 5);
        }
      }
    }
  }

  @Test
  void refusesMisalignedMemory() {
    PhysicalMemory physical = new PhysicalMemory(HostPaths.host());
    try (HostMemory memory = HostMemory.shared(Posix.pageSize())) {
      assertThatThrownBy(() -> physical.map(memory.segment().asSlice(64)))
          .isInstanceOf(DmaMappingException.class)
          .hasMessageContaining("not multiples of the page");
    }
  }

  @Test
  void saysWhatIsMissing() throws IOException {
    FakeFunctionTree machine = new FakeFunctionTree(folder);
    Files.delete(folder.resolve("proc/self/pagemap"));
    PhysicalMemory physical = new PhysicalMemory(machine.paths());
    try (HostMemory memory = HostMemory.shared(Posix.pageSize())) {
      assertThatThrownBy(() -> physical.map(memory.segment()))
          .isInstanceOf(DmaMappingException.class)
          .hasMessageContaining("pagemap");
    }
    assertThat(LockedMemoryLimit.describe(machine.paths())).isEqualTo("8388608 bytes");
    Files.delete(folder.resolve("proc/self/limits"));
    assertThat(LockedMemoryLimit.describe(machine.paths())).isEqualTo("unknown");
  }

  @Test
  void aBarHasItsPhysicalAddresses() {
    Assumptions.assumeTrue(
        System.getProperty("os.arch").equals("amd64"), "bus addresses of BARs are those of x86");
    try (Arena arena = Arena.ofShared()) {
      MemorySegment bar = arena.allocate(4 * 4096, 4096);
      BusRange range =
          PhysicalMemory.peer(
              List.of(
                  new PeerMemory(bar.asSlice(8192, 8192), 0x38_0000_2000L),
                  new PeerMemory(bar.asSlice(0, 4096), 0x38_0000_0000L)));
      assertThat(range.isRemote()).isTrue();
      assertThat(range.size()).isEqualTo(3 * 4096);
      assertThat(range.busAddress(4097)).isEqualTo(0x38_0000_3001L);
      assertThat(range.busAddress(8192)).isEqualTo(0x38_0000_0000L);
      assertThat(range.contiguous(0, 3 * 4096)).isEqualTo(8192);
    }
  }
}
