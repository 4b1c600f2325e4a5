package io.gpunvme.nvme.pci.vfio;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.PeerMemory;
import io.gpunvme.nvme.pci.host.FakeFunctionTree;
import io.gpunvme.nvme.pci.host.IovaSpace;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TranslatedDomainTest {
  private static final long PAGE = 4096;
  private static final long PHYSICAL = 0x38_0000_0000L;
  private static final long FIRST = 1L << 32;

  /** A kernel's table: refuses what overlaps, as the kernel does. */
  private static final class Table implements DmaTable {
    final Map<Long, Long> entries = new TreeMap<>();

    /** Address in this process by bus address. */
    final Map<Long, Long> targets = new TreeMap<>();

    int failWith;
    int failAfter;
    @Nullable String peerProblem;
    boolean closed;

    @Override
    public @Nullable String peerProblem() {
      return peerProblem;
    }

    @Override
    public String how() {
      return "table";
    }

    @Override
    public List<IovaSpace.Range> ranges() {
      return List.of(new IovaSpace.Range(0, (1L << 39) - 1));
    }

    @Override
    public long page() {
      return PAGE;
    }

    @Override
    public void map(long address, long iova, long bytes) {
      if (failWith != 0 && entries.size() >= failAfter) {
        throw new PosixException("ioctl", "fd 3", failWith);
      }
      assertThat(entries.put(iova, bytes)).isNull();
      targets.put(iova, address);
    }

    @Override
    public void unmap(long iova, long bytes) {
      if (failWith != 0 && failAfter == 0) {
        throw new PosixException("ioctl", "fd 3", failWith);
      }
      assertThat(entries.remove(iova)).isEqualTo(bytes);
    }

    @Override
    public void close() {
      closed = true;
    }
  }

  @TempDir Path folder;
  private final Arena arena = Arena.ofShared();
  private final Table table = new Table();
  private TranslatedDomain domain;

  @BeforeEach
  void open() throws IOException {
    domain = new TranslatedDomain(new FakeFunctionTree(folder).paths(), table);
  }

  @AfterEach
  void close() {
    arena.close();
  }

  private MemorySegment memory(long bytes) {
    return arena.allocate(bytes, PAGE);
  }

  @Test
  void mapsUntilTheRangeIsClosed() {
    MemorySegment memory = memory(3 * PAGE);
    BusRange range = domain.map(memory);

    assertThat(range.busAddress(5)).isEqualTo(table.entries.keySet().iterator().next() + 5);
    assertThat(range.busAddress(0)).isGreaterThanOrEqualTo(FIRST);
    assertThat(range.contiguous(0, 3 * PAGE)).isEqualTo(3 * PAGE);
    assertThat(table.entries).containsValue(3 * PAGE);
    range.close();
    range.close();
    assertThat(table.entries).isEmpty();
    assertThat(domain.map(memory(PAGE)).busAddress(0)).isEqualTo(FIRST);
    assertThat(domain.addressBits()).isEqualTo(39);
  }

  @Test
  void closingUnmapsWhatIsLeftAndRangesMayCloseLater() {
    BusRange one = domain.map(memory(PAGE));
    domain.map(memory(PAGE));
    domain.close();
    domain.close();

    assertThat(table.entries).isEmpty();
    assertThat(table.closed).isTrue();
    one.close();
    assertThatThrownBy(() -> domain.map(memory(PAGE)))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("closed");
  }

  @Test
  void anAddressThatTheKernelStillHasIsNotGivenAway() {
    BusRange stuck = domain.map(memory(PAGE));
    long address = stuck.busAddress(0);
    table.failWith = Errno.EIO;
    assertThatThrownBy(stuck::close).isInstanceOf(PosixException.class);
    table.failWith = 0;

    assertThat(domain.map(memory(PAGE)).busAddress(0)).isNotEqualTo(address);
  }

  @Test
  void closesAllTheSameWhenUnmappingFails() {
    domain.map(memory(PAGE));
    table.failWith = Errno.EIO;
    domain.close();

    assertThat(table.closed).isTrue();
  }

  @Test
  void saysWhichLimitWasHit() {
    assertMapFails(Errno.ENOMEM, "RLIMIT_MEMLOCK) is 8388608 bytes", "ulimit -l", "LimitMEMLOCK");
    assertMapFails(Errno.ENOSPC, "0 ranges are mapped", "dma_entry_limit");
    assertMapFails(Errno.EFAULT, "EFAULT", "ioctl fd 3");
    table.failWith = 0;
    assertThat(domain.map(memory(PAGE)).busAddress(0)).isEqualTo(FIRST);
  }

  private void assertMapFails(int errno, String... parts) {
    table.failWith = errno;
    assertThatThrownBy(() -> domain.map(memory(PAGE)))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("4096 bytes could not be mapped")
        .hasMessageContainingAll(parts)
        .hasCauseInstanceOf(PosixException.class);
  }

  /** Parts of a BAR in the order given, each of so many pages from such a page on. */
  private List<PeerMemory> parts(MemorySegment bar, long[]... runs) {
    List<PeerMemory> parts = new ArrayList<>();
    for (long[] run : runs) {
      long offset = run[0] * PAGE;
      parts.add(new PeerMemory(bar.asSlice(offset, run[1] * PAGE), PHYSICAL + offset));
    }
    return parts;
  }

  @Test
  void partsOfABarAreOneRunForTheController() {
    MemorySegment bar = memory(16 * PAGE);
    BusRange range =
        domain.mapPeer(parts(bar, new long[] {9, 1}, new long[] {2, 3}, new long[] {0, 1}));

    long first = range.busAddress(0);
    assertThat(range.isRemote()).isTrue();
    assertThat(range.size()).isEqualTo(5 * PAGE);
    assertThat(range.contiguous(0, 5 * PAGE)).isEqualTo(5 * PAGE);
    assertThat(table.targets)
        .isEqualTo(
            Map.of(
                first,
                bar.address() + 9 * PAGE,
                first + PAGE,
                bar.address() + 2 * PAGE,
                first + 4 * PAGE,
                bar.address()));
    assertThat(domain.map(memory(PAGE)).busAddress(0)).isGreaterThan(first + 5 * PAGE);
    range.close();
    range.close();
    assertThat(table.entries).hasSize(1);
    assertThat(domain.mapPeer(parts(bar, new long[] {3, 1})).busAddress(0)).isEqualTo(first);
    domain.close();
    assertThat(table.entries).isEmpty();
  }

  @Test
  void ofABarThatTheKernelRefusesInPartNothingStaysMapped() {
    MemorySegment bar = memory(16 * PAGE);
    table.failWith = Errno.EFAULT;
    for (int after : new int[] {2, 1, 0}) {
      table.failAfter = after;
      assertThatThrownBy(
              () ->
                  domain.mapPeer(
                      parts(bar, new long[] {5, 1}, new long[] {7, 2}, new long[] {1, 1})))
          .isInstanceOf(DmaMappingException.class)
          .hasMessageContainingAll("BAR", "EFAULT", "vfio_iommu_type1", "iommufd");
      assertThat(table.entries).isEmpty();
    }
    table.failWith = Errno.ENOSPC;
    assertThatThrownBy(() -> domain.mapPeer(parts(bar, new long[] {5, 1}, new long[] {7, 2})))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContainingAll("dma_entry_limit", "2 runs");
    table.failWith = 0;
    assertThat(domain.map(memory(PAGE)).busAddress(0)).isEqualTo(FIRST);
  }

  @Test
  void partsOfABarAreCheckedAndNotEveryTableTakesThem() {
    MemorySegment bar = memory(2 * PAGE);
    assertThatThrownBy(() -> domain.mapPeer(List.of()))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("no part");
    assertThatThrownBy(() -> domain.mapPeer(List.of(new PeerMemory(bar, PHYSICAL + 16))))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("physical address");
    assertThatThrownBy(() -> domain.mapPeer(List.of(new PeerMemory(bar.asSlice(0, 100), PHYSICAL))))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("multiples of the page");
    table.peerProblem = "never";
    assertThatThrownBy(() -> domain.mapPeer(parts(bar, new long[] {0, 1})))
        .isInstanceOf(DmaMappingException.class)
        .hasMessage("never");
    domain.close();
    assertThatThrownBy(() -> domain.mapPeer(parts(bar, new long[] {0, 1})))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("closed");
  }

  @Test
  void refusesMemoryThatNoDeviceCanBeGiven() {
    assertRefused(memory(2 * PAGE).asSlice(8, PAGE), "multiples of the page");
    assertRefused(memory(PAGE).asSlice(0, 100), "multiples of the page");
    assertRefused(memory(PAGE).asReadOnly(), "writable");
    assertRefused(MemorySegment.ofArray(new byte[4096]), "native");
    try (Arena confined = Arena.ofConfined()) {
      assertRefused(confined.allocate(PAGE, PAGE), "one thread");
    }
    assertThat(table.entries).isEmpty();
  }

  private void assertRefused(MemorySegment memory, String why) {
    assertThatThrownBy(() -> domain.map(memory))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining(why);
  }
}
