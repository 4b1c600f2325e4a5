package io.gpunvme.sim.serve;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.ffi.Errno;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** REGION_READ and REGION_WRITE. */
class VfioUserRegionAccessTest extends ServerRig {
  private static final int CONFIG = Protocol.REGION_CONFIG;

  @Test
  void registersAreReadBy4And8Bytes() {
    long cap = controller.bar(0).read64(Registers.CAP);
    assertThat(client.read64(0, Registers.CAP)).isEqualTo(cap);
    assertThat(client.read32(0, Registers.CAP)).isEqualTo((int) cap);
    assertThat(client.read32(0, Registers.CAP + 4)).isEqualTo((int) (cap >>> 32));
  }

  @Test
  void registersAreWrittenBy4And8Bytes() {
    client.write64(0, Registers.ASQ, 0x1234_5678_9ABC_D000L);
    assertThat(client.read64(0, Registers.ASQ)).isEqualTo(0x1234_5678_9ABC_D000L);
    client.write32(0, Registers.ASQ + 4, 7);
    assertThat(client.read64(0, Registers.ASQ)).isEqualTo(0x7_9ABC_D000L);
    assertThat(controller.bar(0).read64(Registers.ASQ)).isEqualTo(0x7_9ABC_D000L);
  }

  @ParameterizedTest
  @CsvSource({
    "0, 0, 1",
    "0, 0, 2",
    "0, 0, 3",
    "0, 0, 5",
    "0, 0, 12",
    "0, 0, 16",
    "0, 2, 4",
    "0, 4, 8",
    "0, -4, 4",
    "0, -8, 8",
    "0, 9223372036854775804, 4",
    "0, 1152921504606846976, 4",
    "0, 4294967296, 4",
    "4, 0, 1",
    "4, 0, 2",
    "1, 0, 4",
    "2, 0, 4",
    "6, 0, 4",
    "8, 0, 4",
    "9, 0, 4",
    "-1, 0, 4",
    "2147483647, 0, 4",
    "7, 4096, 1",
    "7, 4095, 2",
    "7, 0, 4097",
    "7, -1, 1",
    "0, 0, 0",
    "7, 0, 0",
    "0, 0, -1",
    "7, 0, -1",
    "0, 0, 1048577"
  })
  void refusesWhatTheRegionHasNot(int region, long offset, int count) {
    assertThat(client.errno(Command.REGION_READ, RawClient.access(region, offset, count)))
        .isEqualTo(Errno.EINVAL);
    byte[] data = new byte[Math.clamp(count, 0, 4097)];
    assertThat(client.errno(Command.REGION_WRITE, RawClient.access(region, offset, count, data)))
        .isEqualTo(Errno.EINVAL);
  }

  @Test
  void theEndOfARegion() {
    long size = controller.bar(0).size();
    assertThat(client.errno(Command.REGION_READ, RawClient.access(0, size - 4, 4))).isZero();
    assertThat(client.errno(Command.REGION_READ, RawClient.access(0, size - 8, 8))).isZero();
    assertThat(client.errno(Command.REGION_READ, RawClient.access(0, size, 4)))
        .isEqualTo(Errno.EINVAL);
    assertThat(client.read(CONFIG, 4095, 1)).containsExactly(0);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 7, 8, 13, 64, 256, 257, 4096})
  void configurationSpaceIsReadInAnyLength(int count) {
    ConfigSpace config = controller.config();
    for (int offset : new int[] {0, 1, 2, 3, 9}) {
      int bytes = Math.min(count, 4096 - offset);
      byte[] data = client.read(CONFIG, offset, bytes);
      for (int i = 0; i < bytes; i++) {
        int expected = offset + i < config.size() ? config.read(offset + i, 1) : 0;
        assertThat(data[i] & 0xFF).as("byte %d", offset + i).isEqualTo(expected);
      }
    }
  }

  @Test
  void itIsAnNvmeController() {
    assertThat(client.read(CONFIG, 9, 3)).containsExactly(2, 8, 1);
  }

  @Test
  void configurationSpaceIsWrittenInAnyLength() {
    client.write(CONFIG, ConfigSpace.COMMAND, (byte) 6);
    assertThat(client.read(CONFIG, ConfigSpace.COMMAND, 2)).containsExactly(6, 0);
    client.write(CONFIG, ConfigSpace.COMMAND + 1, (byte) 4);
    assertThat(client.read(CONFIG, ConfigSpace.COMMAND, 2)).containsExactly(6, 4);
    client.write(CONFIG, 3, (byte) 0, (byte) 2, (byte) 0, (byte) 0, (byte) 0, (byte) 0);
    assertThat(client.read(CONFIG, ConfigSpace.COMMAND, 2)).containsExactly(2, 0);
    byte[] whole = client.read(CONFIG, 0, 4096);
    client.write(CONFIG, 0, whole);
    assertThat(client.read(CONFIG, 0, 4096)).isEqualTo(whole);
  }

  @Test
  void whatIsNotImplementedIgnoresWrites() {
    client.write(CONFIG, 255, (byte) 1, (byte) 2, (byte) 3);
    assertThat(client.read(CONFIG, 255, 3)).containsExactly(0, 0, 0);
  }

  @Test
  void theMessageHasTheBytesThatItSays() {
    byte[] four = new byte[4];
    assertThat(client.errno(Command.REGION_WRITE, RawClient.access(0, 0x24, 8, four)))
        .isEqualTo(Errno.EINVAL);
    assertThat(client.errno(Command.REGION_WRITE, RawClient.access(0, 0x24, 4, new byte[5])))
        .isEqualTo(Errno.EINVAL);
    assertThat(client.errno(Command.REGION_WRITE, RawClient.access(0, 0x24, 4)))
        .isEqualTo(Errno.EINVAL);
    assertThat(client.errno(Command.REGION_READ, RawClient.access(0, 0, 4, four)))
        .isEqualTo(Errno.EINVAL);
    assertThat(client.errno(Command.REGION_READ, Protocol.payload(15))).isEqualTo(Errno.EINVAL);
    assertThat(client.errno(Command.REGION_WRITE, Protocol.payload(15))).isEqualTo(Errno.EINVAL);
  }

  @Test
  void theAnswerToAWriteHasNoData() {
    try (Message answer =
        client.call(Command.REGION_WRITE, RawClient.access(0, 0x24, 4, new byte[4]))) {
      assertThat(answer.payload().remaining()).isEqualTo(16);
      assertThat(answer.payload().getLong(0)).isEqualTo(0x24);
      assertThat(answer.payload().getInt(8)).isZero();
      assertThat(answer.payload().getInt(12)).isEqualTo(4);
    }
  }

  @Test
  void aPostedWriteIsNotAnswered() {
    client.send(
        99,
        Command.REGION_WRITE,
        Protocol.NO_REPLY,
        RawClient.access(0, Registers.ASQ, 8, new byte[] {0, 0x50, 0, 0, 0, 0, 0, 0}));
    client.send(
        98, Command.REGION_WRITE, Protocol.NO_REPLY, RawClient.access(0, -1, 8, new byte[8]));
    assertThat(client.read64(0, Registers.ASQ)).isEqualTo(0x5000);
  }
}
