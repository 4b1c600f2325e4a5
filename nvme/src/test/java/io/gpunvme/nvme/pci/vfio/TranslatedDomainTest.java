package io.gpunvme.nvme.pci.vfio;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.pci.FakeMachine;
import io.gpunvme.nvme.pci.IovaSpace;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TranslatedDomainTest {
  private static final long PAGE = 4096;
  private static final long FIRST = 1L << 32;

  /** A kernel's table: refuses what overlaps, as the kernel does. */
  private static final class Table implements DmaTable {
    final Map<Long, Long> entries = new TreeMap<>();
    int failWith;
    boolean closed;

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
      if (failWith != 0) {
        throw new PosixException("ioctl", "fd 3", failWith);
      }
      assertThat(entries.put(iova, bytes)).isNull();
    }

    @Override
    public void unmap(long iova, long bytes) {
      if (failWith != 0) {
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
    domain = new TranslatedDomain(new FakeMachine(folder).paths(), table);
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
