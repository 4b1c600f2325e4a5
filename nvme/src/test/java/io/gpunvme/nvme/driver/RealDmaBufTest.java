package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.base.DmaBuf;
import io.gpunvme.ffi.Posix;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.nvme.memory.RemotePort;
import io.gpunvme.nvme.pci.PciFunction;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * A real controller writes straight into memory that another device shares as a dma-buf, and reads
 * from it; the contents are looked at through that device's own mapping. {@code gpunvme.card} names
 * the device: a card with dumb buffers, as vgem makes one.
 */
@Tag("qemu")
class RealDmaBufTest extends ContractRig {
  private static final String CARD = System.getProperty("gpunvme.card", "");
  private static final byte UNTOUCHED = 0x5A;
  private static final long WHOLE = 6 * MIB;
  private static final long OFFSET = 64 << 10;
  private static final long SIZE = 5 * MIB;

  private static final MemorySegment UNTOUCHED_BYTES =
      Arena.ofAuto().allocate(WHOLE).fill(UNTOUCHED);

  private final List<BusRange> ranges = new ArrayList<>();
  private SharedBuffer memory;

  /** Before the controller is opened. */
  @BeforeEach
  @Override
  void open() {
    RealDevice.require();
    requireExporter();
    super.open();
    memory = share(WHOLE, OFFSET, SIZE);
    memory.whole().fill(UNTOUCHED);
  }

  /** Skips the test where nobody shares memory. */
  void requireExporter() {
    assumeTrue(
        !CARD.isEmpty(), "no card shares memory: none is named by -Dgpunvme.card=/dev/dri/…");
  }

  /**
   * Another buffer.
   *
   * @param whole its bytes, a multiple of 4096, as the others
   * @param offset where the memory begins that is shared
   * @param size of that memory
   */
  SharedBuffer share(long whole, long offset, long size) {
    return new DumbBuffer(Path.of(CARD), whole, offset, size);
  }

  @AfterEach
  @Override
  void close() {
    if (controller == null) {
      return;
    }
    ranges.forEach(BusRange::close);
    if (memory != null) {
      memory.close();
    }
    super.close();
  }

  @Override
  PciFunction function() {
    return RealDevice.open();
  }

  @Override
  List<Expected> expected() {
    return RealDevice.namespaces();
  }

  @Override
  ControllerOptions.Builder options() {
    return RealDevice.limit(super.options());
  }

  private BusRange map(RemoteMemory remote) {
    BusRange range = controller.function().map(remote);
    ranges.add(range);
    return range;
  }

  /** Numbers of blocks around pages and the longest command, and beyond that. */
  private long[] sizes(int blockSize) {
    long page = Math.max(1, 4096 / blockSize);
    long most = controller.maxTransferBytes() / blockSize;
    return LongStream.of(
            1,
            2,
            page - 1,
            page,
            page + 1,
            2 * page,
            2 * page + 1,
            17 * page,
            most - 1,
            most,
            most + 1,
            2 * most + page + 1)
        .filter(n -> n > 0 && n * blockSize <= SIZE - 8192)
        .distinct()
        .toArray();
  }

  @Test
  void readsEndInTheOthersMemory() {
    BusRange range = map(memory);
    assertThat(range.isRemote()).isTrue();
    assertThat(range.size()).isEqualTo(SIZE);
    try (BlockDevice device = device(8)) {
      int size = device.namespace().blockSize();
      for (long blocks : sizes(size)) {
        DmaBuffer b = buffer(blocks * size);
        // What reads of this size may change, whatever their offset. To look at all of the rest
        // takes long.
        long most = 8192 + blocks * size;
        for (long offset : new long[] {0, 4, 4096, 4096 - 512, 8192 - 4}) {
          int mark = random.nextInt();
          long slba = random.nextLong(1000);
          String what = where("reading %d blocks at %d to %d".formatted(blocks, slba, offset));
          Blocks.fill(b.memory(), 0, slba, blocks, size, mark);
          device.write(slba, blocks, b.range(), 0);
          memory.memory().asSlice(0, most).fill(UNTOUCHED);
          device.read(slba, blocks, range, offset);
          assertThat(Blocks.mismatch(memory.memory(), offset, slba, blocks, size, mark))
              .as(what)
              .isEqualTo(-1);
          assertUntouched(what, OFFSET, OFFSET + offset);
          assertUntouched(what, OFFSET + offset + blocks * size, OFFSET + most);
        }
        String what = where("reading %d blocks".formatted(blocks));
        assertUntouched(what, 0, OFFSET);
        assertUntouched(what, OFFSET + most, memory.whole().byteSize());
      }
    }
  }

  /** Nobody has changed these bytes of the buffer. */
  private void assertUntouched(String what, long from, long to) {
    MemorySegment part = memory.whole().asSlice(from, to - from);
    assertThat(part.mismatch(UNTOUCHED_BYTES.asSlice(0, to - from))).as(what).isEqualTo(-1);
  }

  @Test
  void writesComeFromTheOthersMemory() {
    BusRange range = map(memory);
    try (BlockDevice device = device(8)) {
      int size = device.namespace().blockSize();
      for (long blocks : sizes(size)) {
        DmaBuffer b = buffer(blocks * size);
        for (long offset : new long[] {0, 4, 4096, 4096 - 512, 8192 - 4}) {
          int mark = random.nextInt();
          long slba = random.nextLong(1000);
          String what = where("writing %d blocks at %d from %d".formatted(blocks, slba, offset));
          Blocks.fill(memory.memory(), offset, slba, blocks, size, mark);
          device.write(slba, blocks, range, offset);
          b.memory().fill((byte) 0);
          device.read(slba, blocks, b.range(), 0);
          assertThat(Blocks.mismatch(b.memory(), 0, slba, blocks, size, mark))
              .as(what)
              .isEqualTo(-1);
        }
      }
    }
  }

  @Test
  void everyPageHasItsOwnAddress() {
    BusRange range = map(memory);
    try (BlockDevice device = device(8)) {
      int size = device.namespace().blockSize();
      long perPage = 4096 / size;
      long pages = SIZE / 4096;
      DmaBuffer b = buffer(SIZE);
      Blocks.fill(b.memory(), 0, 0, pages * perPage, size, 7);
      device.write(0, pages * perPage, b.range(), 0);
      // In an order in which neighbours do not follow each other.
      for (long i = 0; i < pages; i++) {
        long page = i * 769 % pages;
        device.read(page * perPage, perPage, range, page * 4096);
      }
      assertThat(Blocks.mismatch(memory.memory(), 0, 0, pages * perPage, size, 7)).isEqualTo(-1);
      assertUntouched("before every page", 0, OFFSET);
      assertUntouched("behind every page", OFFSET + SIZE, memory.whole().byteSize());
    }
  }

  @Test
  void severalBuffersAtATime() {
    try (SharedBuffer other = share(MIB, 0, MIB);
        BlockDevice device = device(8)) {
      int size = device.namespace().blockSize();
      BusRange first = map(memory);
      BusRange second = map(other);
      BusRange again = map(other);
      long blocks = MIB / size;
      Blocks.fill(other.memory(), 0, 50, blocks, size, 3);
      device.write(50, blocks, again, 0);
      again.close();
      other.memory().fill((byte) 0);
      device.read(50, blocks, first, 8192);
      device.read(50, blocks, second, 0);
      second.close();
      assertThat(Blocks.mismatch(memory.memory(), 8192, 50, blocks, size, 3)).isEqualTo(-1);
      assertThat(Blocks.mismatch(other.memory(), 0, 50, blocks, size, 3)).isEqualTo(-1);
    }
  }

  @Test
  void whatIsNoDmaBufIsRefused() {
    RemoteMemory file =
        new RemoteMemory() {
          @Override
          public String name() {
            return "a file";
          }

          @Override
          public long size() {
            return 4096;
          }

          @Override
          public DmaBuf exportDmaBuf() {
            int fd = Posix.memfdCreate("gpunvme-test", Posix.MFD_CLOEXEC);
            return new DmaBuf(fd, 0, 4096);
          }

          @Override
          public RemotePort openPort(RemotePort.Use use) {
            throw new UnsupportedOperationException();
          }
        };
    assertThatThrownBy(() -> map(file))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContainingAll("a file", "EINVAL");
    SharedBuffer longer = share(2 * MIB, 2 * MIB, MIB);
    assertThatThrownBy(() -> map(longer))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("the memory would be 1048576 bytes");
    longer.close();
  }
}
