package io.gpunvme.nvme.pci.kmod;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.DmaBuf;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.nvme.memory.RemotePort;
import io.gpunvme.nvme.pci.host.FakeFunctionTree;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Pinning and importing: what is asked, what is believed, and what is given back. */
class KmodRangesTest {
  private static final long SIZE = 4 * 4096;

  @TempDir Path folder;
  private final FakeModule module = new FakeModule();
  private final MemorySegment memory = Arena.ofAuto().allocate(SIZE, 4096);
  private KmodRanges ranges;

  @BeforeEach
  void build() throws IOException {
    ranges = new KmodRanges(module, new FakeFunctionTree(folder).paths(), "kmod:0000:01:00.0", 48);
  }

  /** Memory of another device, whose dma-buf is an empty file. */
  private static final class Shared implements RemoteMemory {
    private final long size;
    private final long offset;
    private final long shared;
    int fd = -1;
    boolean inHost;

    Shared(long size, long offset, long shared) {
      this.size = size;
      this.offset = offset;
      this.shared = shared;
    }

    @Override
    public String name() {
      return "a test's memory";
    }

    @Override
    public long size() {
      return size;
    }

    @Override
    public boolean mayBeInHost() {
      return inHost;
    }

    @Override
    public RemotePort openPort(RemotePort.Use use) {
      throw new UnsupportedOperationException();
    }

    @Override
    public DmaBuf exportDmaBuf() {
      fd = Posix.memfdCreate("gpunvme-test", Posix.MFD_CLOEXEC);
      return new DmaBuf(fd, offset, shared);
    }

    void assertClosed() {
      assertThatThrownBy(() -> Posix.size(fd)).isInstanceOf(PosixException.class);
    }
  }

  @Test
  void pinsUntilItIsClosed() {
    BusRange range = ranges.pin(memory);
    assertThat(range.memory()).isSameAs(memory);
    assertThat(module.ranges.values()).containsExactly(SIZE);
    range.close();
    range.close();
    assertThat(module.ranges).isEmpty();
  }

  @Test
  void whatCannotBeReachedIsNotAskedFor() {
    assertThatThrownBy(() -> ranges.pin(memory.asSlice(0, 100)))
        .isInstanceOf(DmaMappingException.class);
    assertThatThrownBy(() -> ranges.pin(MemorySegment.ofArray(new byte[4096])))
        .isInstanceOf(DmaMappingException.class);
    assertThatThrownBy(() -> ranges.pin(memory.asReadOnly()))
        .isInstanceOf(DmaMappingException.class);
    assertThat(module.next).isEqualTo(1);
  }

  @Test
  void anArrayThatIsTooShortGrows() {
    int pages = 2000;
    MemorySegment many = Arena.ofAuto().allocate(pages * 4096L, 4096);
    module.runs = new long[2 * pages];
    for (int i = 0; i < pages; i++) {
      module.runs[2 * i] = (2 * pages - 2L * i) * 4096;
      module.runs[2 * i + 1] = 4096;
    }
    try (BusRange range = ranges.pin(many)) {
      assertThat(module.tooShort).isEqualTo(1);
      assertThat(range.busAddress(4096L * (pages - 1))).isEqualTo(2 * 4096);
    }
    assertThat(module.ranges).isEmpty();
  }

  @Test
  void wantingMoreWithoutEndIsRefused() {
    module.errors.put(KmodAbi.PIN, Errno.ENOSPC);
    assertThatThrownBy(() -> ranges.pin(memory))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("8 attempts");
  }

  @Test
  void addressesThatMakeNoSenseAreGivenBack() {
    module.runs = new long[] {0x1000, 4096};
    assertThatThrownBy(() -> ranges.pin(memory))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("make no sense");
    assertThat(module.ranges).isEmpty();
    module.runs = new long[] {1L << 48, SIZE};
    assertThatThrownBy(() -> ranges.pin(memory)).hasMessageContaining("48 bits");
    assertThat(module.ranges).isEmpty();
  }

  @Test
  void aHandleThatMakesNoSense() {
    module.next = 0;
    assertThatThrownBy(() -> ranges.pin(memory)).hasMessageContaining("handle 0");
    BusRange first = ranges.pin(memory);
    module.next = 1;
    assertThatThrownBy(() -> ranges.pin(memory)).hasMessageContaining("handle 1");
    first.close();
  }

  @Test
  void refusalsSayWhatHelps() {
    assertRefusal(Errno.ENOMEM, "RLIMIT_MEMLOCK", "8388608 bytes", "ulimit -l");
    assertRefusal(Errno.EDQUOT, "most_bytes", "0 of 16777216 bytes", "0 of 100 ranges");
    assertRefusal(Errno.EPERM, "another process");
    assertRefusal(Errno.ENODEV, "the fake module");
    assertRefusal(Errno.EOPNOTSUPP, "cannot reach", "IOMMU");
    assertRefusal(Errno.EFAULT, "not memory of this process");
    assertRefusal(Errno.EIO, "the fake module");
    module.errors.put(KmodAbi.GET_INFO, Errno.EIO);
    assertRefusal(Errno.EDQUOT, "not known");
  }

  @Test
  void aDeviceThatIsGoneIsSaidToBe() {
    module.errors.put(KmodAbi.GET_INFO, Errno.ENODEV);
    module.errors.put(KmodAbi.PIN, Errno.ENODEV);
    assertThatThrownBy(() -> ranges.pin(memory))
        .isInstanceOf(DeviceGoneException.class)
        .hasMessageContaining("kmod:0000:01:00.0 is gone")
        .hasCauseInstanceOf(PosixException.class);
    module.errors.put(KmodAbi.IMPORT, Errno.ENODEV);
    Shared shared = new Shared(SIZE, 0, SIZE);
    assertThatThrownBy(() -> ranges.importing(shared)).isInstanceOf(DeviceGoneException.class);
    shared.assertClosed();
  }

  private void assertRefusal(int errno, String... parts) {
    module.errors.put(KmodAbi.PIN, errno);
    assertThatThrownBy(() -> ranges.pin(memory))
        .isInstanceOf(DmaMappingException.class)
        .hasCauseInstanceOf(PosixException.class)
        .hasMessageContaining(
            "16384 bytes of memory at "
                + Long.toHexString(memory.address()).toUpperCase(java.util.Locale.ROOT))
        .hasMessageContaining(Errno.name(errno))
        .hasMessageContainingAll(parts);
  }

  @Test
  void importsPartOfADmaBuf() {
    Shared shared = new Shared(SIZE, 8192, SIZE);
    module.runs = new long[] {0x9000, 4096, 0x20000, (1 << 20) - 4096};
    BusRange range = ranges.importing(shared);
    assertThat(module.imported).containsExactly(shared.fd);
    shared.assertClosed();
    assertThat(range.isRemote()).isTrue();
    assertThat(range.size()).isEqualTo(SIZE);
    assertThat(range.busAddress(0)).isEqualTo(0x21000);
    range.close();
    assertThat(module.ranges).isEmpty();
  }

  @Test
  void memoryThatItsDriverMovedToTheHostIsRefused() {
    module.importFlags = KmodAbi.Import.RAM;
    Shared moved = new Shared(SIZE, 0, SIZE);
    assertThatThrownBy(() -> ranges.importing(moved))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContainingAll("a test's memory", "moved to the host's memory");
    moved.assertClosed();
    assertThat(module.ranges).isEmpty();
    Shared ofTheHost = new Shared(SIZE, 0, SIZE);
    ofTheHost.inHost = true;
    ranges.importing(ofTheHost).close();
    module.importFlags = KmodAbi.Import.REMAPPED;
    ranges.importing(new Shared(SIZE, 0, SIZE)).close();
    assertThat(module.ranges).isEmpty();
  }

  @Test
  void aDmaBufThatDoesNotHoldTheMemory() {
    Shared beyond = new Shared(SIZE, (1 << 20) - 4096, SIZE);
    assertThatThrownBy(() -> ranges.importing(beyond))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContainingAll("a test's memory", "1048576 bytes", "16384 bytes from 1044480");
    beyond.assertClosed();
    Shared other = new Shared(SIZE, 0, 4096);
    assertThatThrownBy(() -> ranges.importing(other)).hasMessageContaining("of 4096");
    other.assertClosed();
    assertThatThrownBy(() -> ranges.importing(new Shared(100, 0, 4096)))
        .hasMessageContaining("100 bytes");
    assertThat(module.ranges).isEmpty();
  }

  @Test
  void aLengthThatMakesNoSense() {
    for (long bytes : new long[] {0, -4096, Long.MIN_VALUE}) {
      module.importBytes = bytes;
      assertThatThrownBy(() -> ranges.importing(new Shared(SIZE, 0, SIZE)))
          .isInstanceOf(DmaMappingException.class)
          .hasMessageContaining("has " + bytes + " bytes");
    }
    Shared far = new Shared(SIZE, Long.MAX_VALUE & -4096, SIZE);
    module.importBytes = 1 << 20;
    assertThatThrownBy(() -> ranges.importing(far)).isInstanceOf(DmaMappingException.class);
    far.assertClosed();
    assertThat(module.ranges).isEmpty();
  }

  @Test
  void whatItsOwnerDoesNotShareIsRefused() {
    Shared shared = new Shared(SIZE, 0, SIZE);
    module.errors.put(KmodAbi.IMPORT, Errno.EINVAL);
    assertThatThrownBy(() -> ranges.importing(shared))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContainingAll("a test's memory", "EINVAL");
    shared.assertClosed();
  }

  @Test
  void closedInAnyOrder() {
    BusRange first = ranges.pin(memory);
    ranges.close();
    ranges.close();
    first.close();
    assertThat(module.ranges).as("the file's end releases it").hasSize(1);
    assertThatThrownBy(() -> ranges.pin(memory)).hasMessageContaining("closed");
    assertThatThrownBy(() -> ranges.importing(new Shared(SIZE, 0, SIZE)))
        .hasMessageContaining("closed");
  }

  @Test
  void aReleaseThatFailsIsTyped() {
    BusRange range = ranges.pin(memory);
    module.errors.put(KmodAbi.RELEASE, Errno.ENOENT);
    assertThatThrownBy(range::close)
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("releasing");
  }
}
