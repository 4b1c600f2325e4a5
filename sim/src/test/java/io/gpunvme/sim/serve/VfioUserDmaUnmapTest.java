package io.gpunvme.sim.serve;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.ffi.Errno;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import io.gpunvme.sim.SimConfigBuilder;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** DMA_UNMAP. */
class VfioUserDmaUnmapTest extends ServerRig {
  private static final long AT = 0x20_0000;
  private static final long BYTES = 4 * Pages.PAGE;
  private static final int DATA_TRANSFER_ERROR = StatusCode.DATA_TRANSFER_ERROR.status();

  @Override
  SimConfigBuilder config() {
    return super.config().latencyNanos(30_000_000);
  }

  @Test
  void isAnsweredByWhatWasAsked() {
    try (Pages pages = Pages.allocate(BYTES)) {
      client.map(pages, AT, READ_WRITE);
      try (Message answer = client.call(Command.DMA_UNMAP, RawClient.unmapping(AT, BYTES))) {
        assertThat(answer.error()).isZero();
        assertThat(answer.payload()).isEqualTo(RawClient.unmapping(AT, BYTES));
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"0, 3", "0, 5", "1, 3", "-1, 5", "1, 4", "0, 0", "100, 4"})
  void onlyWholeRangesAreUnmapped(int fromPage, int count) {
    try (Pages pages = Pages.allocate(BYTES)) {
      client.map(pages, AT, READ_WRITE);
      assertThat(client.unmap(AT + fromPage * Pages.PAGE, count * Pages.PAGE))
          .isEqualTo(Errno.ENOENT);
      assertThat(client.unmap(AT, BYTES)).isZero();
      assertThat(client.unmap(AT, BYTES)).isEqualTo(Errno.ENOENT);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 23})
  void argszIsAtLeastTheSize(int argsz) {
    assertThat(client.errno(Command.DMA_UNMAP, RawClient.unmapping(argsz, 0, AT, BYTES)))
        .isEqualTo(Errno.EINVAL);
  }

  @Test
  void theMessageHasItsSize() {
    assertThat(client.errno(Command.DMA_UNMAP, Protocol.payload(23))).isEqualTo(Errno.EINVAL);
    assertThat(client.errno(Command.DMA_UNMAP, RawClient.ints(32, 0, 0, 0, 0, 0, 0, 0)))
        .isEqualTo(Errno.EINVAL);
  }

  /** SPDK's initiator sends the range's descriptor again; it means nothing. */
  @Test
  void aDescriptorIsClosed() {
    try (Pages pages = Pages.allocate(BYTES)) {
      for (int i = 0; i < 3; i++) {
        client.map(pages, AT, READ_WRITE);
        assertThat(client.errno(Command.DMA_UNMAP, RawClient.unmapping(AT, BYTES), pages.fd()))
            .isZero();
        assertThat(client.unmap(AT, BYTES)).isEqualTo(Errno.ENOENT);
      }
    }
  }

  @Test
  void flags() {
    assertThat(client.errno(Command.DMA_UNMAP, RawClient.unmapping(24, 1, AT, BYTES)))
        .isEqualTo(Errno.EOPNOTSUPP);
    for (int flags : new int[] {3, 4, -1}) {
      assertThat(client.errno(Command.DMA_UNMAP, RawClient.unmapping(24, flags, 0, 0)))
          .isEqualTo(Errno.EINVAL);
    }
    assertThat(client.errno(Command.DMA_UNMAP, RawClient.unmapping(24, 2, AT, 0)))
        .isEqualTo(Errno.EINVAL);
    assertThat(client.errno(Command.DMA_UNMAP, RawClient.unmapping(24, 2, 0, BYTES)))
        .isEqualTo(Errno.EINVAL);
  }

  @Test
  void allAtOnce() {
    try (Pages pages = Pages.allocate(BYTES);
        RawNvme nvme = RawNvme.start(client)) {
      client.map(pages, AT, READ_WRITE);
      client.map(pages, 2 * AT, Protocol.DMA_READABLE);
      assertThat(client.errno(Command.DMA_UNMAP, RawClient.unmapping(24, 2, 0, 0))).isZero();
      assertThat(client.unmap(AT, BYTES)).isEqualTo(Errno.ENOENT);
      assertThat(client.errno(Command.DMA_UNMAP, RawClient.unmapping(24, 2, 0, 0))).isZero();
      client.map(nvme.queues, RawNvme.QUEUES, READ_WRITE);
      client.map(pages, AT, READ_WRITE);
      assertThat(nvme.page(IoOpcode.READ, 0, AT)).isZero();
    }
  }

  @Test
  void whatIsUnmappedIsNotReachedAnyMore() {
    try (Pages pages = Pages.allocate(BYTES);
        RawNvme nvme = RawNvme.start(client)) {
      client.map(pages, AT, READ_WRITE);
      assertThat(nvme.page(IoOpcode.READ, 0, AT)).isZero();
      assertThat(client.unmap(AT, BYTES)).isZero();
      pages.memory().fill((byte) 1);
      assertThat(nvme.page(IoOpcode.READ, 0, AT)).isEqualTo(DATA_TRANSFER_ERROR);
      client.map(pages, AT, READ_WRITE);
      assertThat(pages.memory().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 1);
      assertThat(nvme.page(IoOpcode.READ, 0, AT)).isZero();
      assertThat(pages.memory().get(ValueLayout.JAVA_BYTE, 0)).isZero();
    }
  }

  /** Once the answer is there, the memory is the client's alone, whatever was under way. */
  @Test
  void commandsUnderWay() throws Exception {
    try (RawNvme nvme = RawNvme.start(client)) {
      for (int round = 0; round < 20; round++) {
        try (Pages pages = Pages.allocate(16 * Pages.PAGE)) {
          client.map(pages, AT, READ_WRITE);
          for (int i = 0; i < RawNvme.ENTRIES - 1; i++) {
            nvme.io(IoOpcode.READ, 0, 8, AT + i * Pages.PAGE, 0);
          }
          Thread.sleep(round * 2);
          assertThat(client.unmap(AT, 16 * Pages.PAGE)).isZero();
          pages.memory().fill((byte) 0x5A);
          int late = 0;
          for (int i = 0; i < RawNvme.ENTRIES - 1; i++) {
            int status = nvme.take(RawNvme.IO)[1];
            assertThat(status).isIn(0, DATA_TRANSFER_ERROR);
            late += status == 0 ? 0 : 1;
          }
          assertThat(late).isBetween(0, RawNvme.ENTRIES - 1);
          for (long i = 0; i < pages.memory().byteSize(); i++) {
            assertThat(pages.memory().get(ValueLayout.JAVA_BYTE, i)).isEqualTo((byte) 0x5A);
          }
        }
      }
    }
  }

  @Test
  void queuesInUse() {
    try (Pages pages = Pages.allocate(BYTES);
        RawNvme nvme = RawNvme.start(client)) {
      client.map(pages, AT, READ_WRITE);
      for (int i = 0; i < 8; i++) {
        nvme.io(IoOpcode.READ, 0, 8, AT, 0);
      }
      assertThat(client.unmap(RawNvme.QUEUES, RawNvme.ALL_QUEUES)).isZero();
      nvme.queues.memory().fill((byte) 0x77);
      long end = System.nanoTime() + 300_000_000L;
      while (System.nanoTime() < end) {
        nvme.csts();
      }
      for (long i = 0; i < nvme.queues.memory().byteSize(); i++) {
        assertThat(nvme.queues.memory().get(ValueLayout.JAVA_BYTE, i)).isEqualTo((byte) 0x77);
      }
    }
    try (RawNvme next = RawNvme.start(nextClient())) {
      next.roundTrip(0, 5);
    }
  }
}
