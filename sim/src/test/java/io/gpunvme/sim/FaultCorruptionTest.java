package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.SmartLog;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/** Faults that end in the contents: corrupted data, injected statuses and the error log. */
class FaultCorruptionTest {
  private static int differingBits(CommandLab lab, byte[] expected) {
    int bits = 0;
    for (int i = 0; i < expected.length; i++) {
      int difference = expected[i] ^ lab.memory().get(ValueLayout.JAVA_BYTE, i);
      bits += Integer.bitCount(difference & 0xFF);
    }
    return bits;
  }

  private static byte[] written(CommandLab lab) {
    lab.pattern(1);
    lab.ioOk(lab.transfer(IoOpcode.WRITE));
    return lab.memory().asSlice(0, 4096).toArray(ValueLayout.JAVA_BYTE);
  }

  @Test
  void aReadArrivesChangedOnce() {
    try (CommandLab lab = new CommandLab()) {
      byte[] expected = written(lab);
      lab.host.controller.faults().add("corrupt on read count=1");
      lab.ioOk(lab.transfer(IoOpcode.READ));
      assertThat(differingBits(lab, expected)).isEqualTo(1);
      lab.ioOk(lab.transfer(IoOpcode.READ));
      assertThat(differingBits(lab, expected)).isZero();
    }
  }

  @Test
  void aWriteIsStoredChangedAndTheHostsBufferIsLeftAlone() {
    try (CommandLab lab = new CommandLab()) {
      lab.host.controller.faults().add("corrupt=5 on write count=1");
      byte[] expected = written(lab);
      lab.pattern(1);
      assertThat(differingBits(lab, expected)).as("the buffer").isZero();
      lab.ioOk(lab.transfer(IoOpcode.READ));
      assertThat(differingBits(lab, expected)).isIn(1, 3, 5);
      assertThat(lab.status(false, lab.transfer(IoOpcode.COMPARE))).isZero();
      lab.pattern(1);
      assertThat(lab.status(false, lab.transfer(IoOpcode.COMPARE)))
          .isEqualTo(StatusCode.COMPARE_FAILURE.dnr());
    }
  }

  @Test
  void whatHasNoDataIsNotCorrupted() {
    try (CommandLab lab =
        new CommandLab(b -> b.fault(FaultRule.of(FaultRule.Action.CORRUPT).build()))) {
      lab.ioOk(lab.flush());
      lab.ioOk(lab.range(IoOpcode.VERIFY));
    }
  }

  @Test
  void anInjectedStatusIsLoggedLikeARealOne() {
    try (CommandLab lab = new CommandLab()) {
      lab.host.controller.faults().add("status=media/unrecovered-read on read lba=16..17 nth=2");
      lab.ioOk(lab.transfer(IoOpcode.READ));
      int status = lab.run(false, lab.transfer(IoOpcode.READ)).status();
      assertThat(status).isEqualTo(StatusCode.UNRECOVERED_READ_ERROR.status() | Status.MORE);
      lab.ioOk(lab.transfer(IoOpcode.READ));
      lab.host.adminOk(lab.getLog(2, 512));
      assertThat(new io.gpunvme.nvme.spec.SmartLog(lab.memory()).getLong(SmartLog.MEDIA_ERRORS))
          .isEqualTo(1);
    }
  }
}
