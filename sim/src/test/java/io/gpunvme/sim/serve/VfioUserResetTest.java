package io.gpunvme.sim.serve;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.ffi.Errno;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/** DEVICE_RESET, and what a client finds of the one before it. */
class VfioUserResetTest extends ServerRig {
  @Test
  void isAHeader() {
    try (Message answer = client.call(Command.DEVICE_RESET, Protocol.payload(0))) {
      assertThat(answer.error()).isZero();
      assertThat(answer.payload().remaining()).isZero();
    }
    assertThat(client.errno(Command.DEVICE_RESET, RawClient.ints(4))).isEqualTo(Errno.EINVAL);
  }

  @Test
  void registersAndQueuesAreGoneAndMemoryStaysMapped() {
    try (RawNvme nvme = RawNvme.start(client);
        Pages pages = Pages.allocate(Pages.PAGE)) {
      client.map(pages, 0x20_0000, READ_WRITE);
      assertThat(client.errno(Command.DEVICE_RESET, Protocol.payload(0))).isZero();
      assertThat(client.read32(0, Registers.CC)).isZero();
      assertThat(client.read64(0, Registers.ASQ)).isZero();
      assertThat(client.read(Protocol.REGION_CONFIG, ConfigSpace.COMMAND, 2)).containsExactly(2, 0);
      assertThat(
              client.errno(Command.DMA_MAP, RawClient.mapping(3, 0, 0x20_0000, 4096), pages.fd()))
          .isEqualTo(Errno.EEXIST);
      assertThat(client.unmap(RawNvme.QUEUES, RawNvme.ALL_QUEUES)).isZero();
      assertThat(client.unmap(0x20_0000, Pages.PAGE)).isZero();
    }
  }

  @Test
  void theNextClientFindsItAsAfterPowerOn() {
    byte[] config = client.read(Protocol.REGION_CONFIG, 0, 256);
    try (RawNvme nvme = RawNvme.start(client)) {
      nvme.roundTrip(16, 3);
      client.write(Protocol.REGION_CONFIG, 0x3C, (byte) 11);
      client.write(4, 0, (byte) 4, (byte) 0, (byte) 0, (byte) 0);
    }
    nextClient();
    assertThat(client.read(Protocol.REGION_CONFIG, 0, 256)).isEqualTo(config);
    assertThat(client.read32(0, Registers.CC)).isZero();
    assertThat(client.read32(0, Registers.CSTS)).isZero();
    assertThat(client.read64(0, Registers.ASQ)).isZero();
    assertThat(client.read32(4, 0)).isZero();
    assertThat(client.unmap(RawNvme.QUEUES, RawNvme.ALL_QUEUES)).isEqualTo(Errno.ENOENT);
    try (Pages pages = Pages.allocate(Pages.PAGE);
        RawNvme nvme = RawNvme.start(client)) {
      client.map(pages, 0x20_0000, READ_WRITE);
      assertThat(nvme.page(IoOpcode.READ, 16, 0x20_0000)).isZero();
      assertThat(pages.memory().get(ValueLayout.JAVA_BYTE, 0))
          .as("the data stays")
          .isEqualTo((byte) 3);
    }
  }

  /** Who keeps the doorbells mapped rings at nobody's door. */
  @Test
  void anOldClientsDoorbellsDoNothing() {
    RawNvme old = RawNvme.start(client);
    MemorySegment page = old.doorbells();
    client.close();
    client = RawClient.greeted(socket);
    try (RawNvme nvme = RawNvme.start(client)) {
      for (int i = 0; i < 100; i++) {
        for (int at = 0; at < 40; at += 4) {
          page.set(ValueLayout.JAVA_INT, at, 0x7000 + i * 5 + at);
        }
        nvme.roundTrip(i, i);
      }
      assertThat(nvme.csts().isSet(Csts.CFS)).isFalse();
      assertThat(controller.fatalReason()).isNull();
      for (int at = 16; at < 40; at += 4) {
        assertThat(nvme.doorbells().get(ValueLayout.JAVA_INT, at)).isZero();
      }
    }
    old.close();
  }
}
