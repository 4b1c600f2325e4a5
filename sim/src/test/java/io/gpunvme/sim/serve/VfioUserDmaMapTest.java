package io.gpunvme.sim.serve;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.EventFd;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** DMA_MAP, and what the controller may then do. */
class VfioUserDmaMapTest extends ServerRig {
  private static final long AT = 0x20_0000;
  private static final long BYTES = 4 * Pages.PAGE;
  private static final int DATA_TRANSFER_ERROR = StatusCode.DATA_TRANSFER_ERROR.status();

  private Pages pages;

  @BeforeEach
  void allocate() {
    pages = Pages.allocate(BYTES);
  }

  @AfterEach
  void free() {
    pages.close();
  }

  @Override
  @AfterEach
  void nothingIsLeft() {
    free();
    super.nothingIsLeft();
  }

  private int map(ByteBuffer asked, int... descriptors) {
    return client.errno(Command.DMA_MAP, asked, descriptors);
  }

  @Test
  void isAnsweredByAHeader() {
    try (Message answer =
        client.call(Command.DMA_MAP, RawClient.mapping(3, 0, AT, BYTES), pages.fd())) {
      assertThat(answer.error()).isZero();
      assertThat(answer.payload().remaining()).isZero();
    }
  }

  @ParameterizedTest
  @CsvSource({"0, 4", "0, 1", "1, 1", "3, 1", "1, 2", "-1, 2", "3, 2", "-1, 6", "-4, 5"})
  void whatOverlapsExists(int fromPage, int count) {
    assertThat(map(RawClient.mapping(3, 0, AT, BYTES), pages.fd())).isZero();
    try (Pages other = Pages.allocate(8 * Pages.PAGE)) {
      assertThat(
              map(
                  RawClient.mapping(3, 0, AT + fromPage * Pages.PAGE, count * Pages.PAGE),
                  other.fd()))
          .isEqualTo(Errno.EEXIST);
    }
  }

  @Test
  void whatIsBesideDoesNotOverlap() {
    long page = Pages.PAGE;
    assertThat(map(RawClient.mapping(3, 0, AT, page), pages.fd())).isZero();
    assertThat(map(RawClient.mapping(3, page, AT + page, page), pages.fd())).isZero();
    assertThat(map(RawClient.mapping(3, 0, AT - page, page), pages.fd())).isZero();
    assertThat(map(RawClient.mapping(3, 0, 0, page), pages.fd())).isZero();
  }

  @Test
  void argszIsAtLeastTheSize() {
    assertThat(map(RawClient.mapping(31, 3, 0, AT, BYTES), pages.fd())).isEqualTo(Errno.EINVAL);
    assertThat(map(RawClient.mapping(0, 3, 0, AT, BYTES), pages.fd())).isEqualTo(Errno.EINVAL);
    assertThat(map(RawClient.mapping(-1, 3, 0, AT, BYTES), pages.fd())).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 31, 33, 64})
  void theMessageHasItsSize(int bytes) {
    ByteBuffer asked = Protocol.payload(bytes);
    if (bytes >= 32) {
      asked.put(RawClient.mapping(64, 3, 0, AT, BYTES)).clear();
    }
    assertThat(map(asked, pages.fd())).isEqualTo(Errno.EINVAL);
  }

  @Test
  void oneDescriptorAtMost() {
    assertThat(map(RawClient.mapping(3, 0, AT, BYTES), pages.fd(), pages.fd()))
        .isEqualTo(Errno.EINVAL);
    assertThat(map(RawClient.mapping(3, 0, AT, BYTES))).as("by messages").isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 4, 5, 7, 8, 1 << 31, -1})
  void thePermissionsAreReadOrWriteOrBoth(int flags) {
    assertThat(map(RawClient.mapping(flags, 0, AT, BYTES), pages.fd())).isEqualTo(Errno.EINVAL);
  }

  @ParameterizedTest
  @CsvSource({
    "0, 0x200001, 4096",
    "0, 0x200200, 4096",
    "1, 0x200000, 4096",
    "-4096, 0x200000, 4096",
    "0, 0x200000, 0",
    "0, 0x200000, 100",
    "0, 0x200000, -4096",
    "0, -4096, 4096",
    "0, 0x7ffffffffffff000, 4096",
    "0, 0x7ffffffffffff000, 8192",
    "0, 0x4000000000000000, 4096",
    "0, 0x200000, 20480",
    "4096, 0x200000, 16384",
    "16384, 0x200000, 4096",
    "0x7ffffffffffff000, 0x200000, 4096",
    "0, 0, 0x7ffffffffffff000"
  })
  void refusesWhatMakesNoSense(String offset, String address, String size) {
    assertThat(
            map(
                RawClient.mapping(3, Long.decode(offset), Long.decode(address), Long.decode(size)),
                pages.fd()))
        .isEqualTo(Errno.EINVAL);
  }

  @Test
  void refusesWhatIsNoMemory() throws IOException {
    try (EventFd event = EventFd.create()) {
      assertThat(map(RawClient.mapping(3, 0, AT, BYTES), event.fd())).isEqualTo(Errno.EINVAL);
    }
    int directory = Posix.open(folder.toString(), Posix.O_RDONLY | Posix.O_CLOEXEC, 0);
    assertThat(map(RawClient.mapping(3, 0, AT, Pages.PAGE), directory)).isPositive();
    Posix.close(directory);
    Path file = folder.resolve("read-only");
    Files.write(file, new byte[8192]);
    int fd = Posix.open(file.toString(), Posix.O_RDONLY | Posix.O_CLOEXEC, 0);
    assertThat(map(RawClient.mapping(3, 0, AT, 8192), fd)).isEqualTo(Errno.EACCES);
    assertThat(map(RawClient.mapping(1, 0, AT, 8192), fd)).isZero();
    Posix.close(fd);
  }

  @Test
  void thereIsAMost() {
    for (int i = 0; i < 4096; i++) {
      assertThat(map(RawClient.mapping(3, 0, AT + i * 2 * Pages.PAGE, Pages.PAGE), pages.fd()))
          .as("range %d", i)
          .isZero();
    }
    assertThat(map(RawClient.mapping(3, 0, 0, Pages.PAGE), pages.fd())).isEqualTo(Errno.ENOSPC);
    assertThat(client.unmap(AT, Pages.PAGE)).isZero();
    assertThat(map(RawClient.mapping(3, 0, 0, Pages.PAGE), pages.fd())).isZero();
  }

  // ---- what the controller may do

  private void fill(Pages memory, byte value) {
    memory.memory().fill(value);
  }

  private boolean holds(Pages memory, byte value) {
    MemorySegment m = memory.memory();
    for (long i = 0; i < m.byteSize(); i++) {
      if (m.get(ValueLayout.JAVA_BYTE, i) != value) {
        return false;
      }
    }
    return true;
  }

  @Test
  void theOffsetIsInTheFile() {
    try (RawNvme nvme = RawNvme.start(client)) {
      fill(pages, (byte) 7);
      assertThat(map(RawClient.mapping(3, 2 * Pages.PAGE, AT, Pages.PAGE), pages.fd())).isZero();
      assertThat(nvme.page(IoOpcode.READ, 0, AT)).isZero();
      for (int page = 0; page < 4; page++) {
        assertThat(pages.memory().get(ValueLayout.JAVA_BYTE, page * Pages.PAGE))
            .isEqualTo((byte) (page == 2 ? 0 : 7));
      }
    }
  }

  @Test
  void partOfAHugePage() {
    SharedMemory huge;
    try {
      huge = SharedMemory.allocateHuge("client-pages", SharedMemory.HUGE_PAGE);
    } catch (PosixException e) {
      Assumptions.abort("no huge pages: " + e.getMessage());
      return;
    }
    try (huge;
        RawNvme nvme = RawNvme.start(client)) {
      huge.segment().fill((byte) 7);
      assertThat(map(RawClient.mapping(3, 5 * Pages.PAGE, AT, Pages.PAGE), huge.fd())).isZero();
      assertThat(nvme.page(IoOpcode.READ, 0, AT)).isZero();
      assertThat(nvme.page(IoOpcode.READ, 0, AT + Pages.PAGE)).isEqualTo(DATA_TRANSFER_ERROR);
      for (int page = 4; page < 7; page++) {
        assertThat(huge.segment().get(ValueLayout.JAVA_BYTE, page * Pages.PAGE))
            .isEqualTo((byte) (page == 5 ? 0 : 7));
      }
      assertThat(client.unmap(AT, Pages.PAGE)).isZero();
    }
  }

  @Test
  void whatMayOnlyBeReadIsNotWritten() {
    try (RawNvme nvme = RawNvme.start(client)) {
      fill(pages, (byte) 9);
      client.map(pages, AT, Protocol.DMA_READABLE);
      assertThat(nvme.page(IoOpcode.WRITE, 8, AT)).isZero();
      assertThat(nvme.page(IoOpcode.READ, 0, AT)).isEqualTo(DATA_TRANSFER_ERROR);
      assertThat(nvme.await(RawNvme.IO, nvme.io(IoOpcode.READ, 0, 16, AT, AT + Pages.PAGE)))
          .isEqualTo(DATA_TRANSFER_ERROR);
      assertThat(holds(pages, (byte) 9)).isTrue();
      assertThat(controller.stats().dmaRefusals()).isEqualTo(2);
      nvme.roundTrip(0, 1);
    }
  }

  @Test
  void whatMayOnlyBeWrittenIsNotRead() {
    try (RawNvme nvme = RawNvme.start(client);
        Pages other = Pages.allocate(Pages.PAGE)) {
      fill(pages, (byte) 5);
      client.map(pages, AT, Protocol.DMA_WRITABLE);
      assertThat(nvme.page(IoOpcode.WRITE, 0, AT)).isEqualTo(DATA_TRANSFER_ERROR);
      assertThat(nvme.page(IoOpcode.COMPARE, 0, AT)).isEqualTo(DATA_TRANSFER_ERROR);
      fill(other, (byte) 1);
      client.map(other, AT * 2, Protocol.DMA_WRITABLE);
      assertThat(nvme.page(IoOpcode.READ, 0, AT * 2)).isZero();
      assertThat(holds(other, (byte) 0)).as("nothing was written to the namespace").isTrue();
    }
  }

  @Test
  void aListOfPagesIsOnlyRead() {
    try (RawNvme nvme = RawNvme.start(client);
        Pages list = Pages.allocate(Pages.PAGE)) {
      client.map(pages, AT, READ_WRITE);
      client.map(list, 2 * AT, Protocol.DMA_READABLE);
      for (int i = 0; i < 3; i++) {
        list.memory().setAtIndex(ValueLayout.JAVA_LONG, i, AT + (i + 1) * Pages.PAGE);
      }
      assertThat(nvme.await(RawNvme.IO, nvme.io(IoOpcode.READ, 0, 32, AT, 2 * AT))).isZero();
      assertThat(client.unmap(2 * AT, Pages.PAGE)).isZero();
      client.map(list, 2 * AT, Protocol.DMA_WRITABLE);
      assertThat(nvme.await(RawNvme.IO, nvme.io(IoOpcode.READ, 0, 32, AT, 2 * AT)))
          .isEqualTo(DATA_TRANSFER_ERROR);
    }
  }

  @Test
  void whatIsNotMappedIsNotReached() {
    try (RawNvme nvme = RawNvme.start(client)) {
      fill(pages, (byte) 3);
      client.map(pages, AT, READ_WRITE);
      for (long address : new long[] {AT - Pages.PAGE, AT + BYTES, 0, 1L << 46}) {
        assertThat(nvme.page(IoOpcode.READ, 0, address)).isEqualTo(DATA_TRANSFER_ERROR);
      }
      assertThat(
              nvme.await(RawNvme.IO, nvme.io(IoOpcode.READ, 0, 16, AT + BYTES - 4096, AT + BYTES)))
          .isEqualTo(DATA_TRANSFER_ERROR);
      assertThat(holds(pages, (byte) 3)).isTrue();
    }
  }
}
