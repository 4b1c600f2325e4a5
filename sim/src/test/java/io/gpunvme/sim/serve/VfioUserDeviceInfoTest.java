package io.gpunvme.sim.serve;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.ffi.Errno;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;

/** DEVICE_GET_INFO. */
class VfioUserDeviceInfoTest extends ServerRig {
  @Test
  void isAPciFunctionThatCanBeReset() {
    try (Message answer = client.call(Command.DEVICE_GET_INFO, RawClient.ints(16, 0, 0, 0))) {
      ByteBuffer payload = answer.payload();
      assertThat(payload.remaining()).isEqualTo(16);
      assertThat(payload.getInt(0)).isEqualTo(16);
      assertThat(payload.getInt(4)).isEqualTo(Protocol.DEVICE_RESETS | Protocol.DEVICE_PCI);
      assertThat(payload.getInt(8)).isEqualTo(9);
      assertThat(payload.getInt(12)).isEqualTo(5);
      assertThat(answer.descriptors()).isEmpty();
    }
  }

  @Test
  void argszSaysHowMuchTheClientTakes() {
    assertThat(client.errno(Command.DEVICE_GET_INFO, RawClient.ints(15, 0, 0, 0)))
        .isEqualTo(Errno.EINVAL);
    assertThat(client.errno(Command.DEVICE_GET_INFO, RawClient.ints(-1, 0, 0, 0))).isZero();
    assertThat(client.errno(Command.DEVICE_GET_INFO, RawClient.ints(4096, 0, 0, 0))).isZero();
  }

  @Test
  void theMessageHasAtLeastItsSize() {
    assertThat(client.errno(Command.DEVICE_GET_INFO, RawClient.ints(16, 0, 0)))
        .isEqualTo(Errno.EINVAL);
    assertThat(client.errno(Command.DEVICE_GET_INFO, Protocol.payload(0))).isEqualTo(Errno.EINVAL);
    assertThat(client.errno(Command.DEVICE_GET_INFO, RawClient.ints(20, 0, 0, 0, 0))).isZero();
  }
}
