package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.queue.DeviceError.Kind;
import io.gpunvme.nvme.spec.IoOpcode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class DeviceErrorTest {
  private static DeviceError error(Kind kind, long slba, int opcode) {
    return new DeviceError(kind, 0, 3, 17, slba, opcode, 0);
  }

  @ParameterizedTest
  @EnumSource(names = {"STATUS", "TIMEOUT", "LATE", "STALE"})
  void aKnownCommandIsNamed(Kind kind) {
    assertThat(error(kind, 8, IoOpcode.READ)).asString().startsWith("Read at LBA 8 ");
  }

  /** Opcode 0 and LBA 0 are no Flush here. */
  @ParameterizedTest
  @EnumSource(names = {"STALE", "UNKNOWN", "MALFORMED"})
  void nothingIsSaidOfACommandThatIsNotKnown(Kind kind) {
    assertThat(error(kind, 0, 0))
        .asString()
        .startsWith("a command ")
        .contains("queue 3, CID 17")
        .doesNotContain("Flush", "LBA");
  }
}
