package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** A real controller with a block that cannot be read; {@code -Dgpunvme.unreadable} says which. */
@Tag("qemu")
class RealMediaErrorTest extends ContractRig {
  private static final long BAD = Long.getLong("gpunvme.unreadable", -1);

  @Override
  PciFunction function() {
    RealDevice.require();
    assumeTrue(BAD >= 0, "no unreadable block: none is named by -Dgpunvme.unreadable=LBA");
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

  @Test
  void onlyReadsOfTheBadBlockFail() {
    try (BlockDevice device = device(8)) {
      int size = device.namespace().blockSize();
      DmaBuffer b = buffer(64L * size);
      Blocks.fill(b.memory(), 0, BAD - 32, 64, size, 5);
      device.write(BAD - 32, 64, b.range(), 0);
      b.memory().fill((byte) 0);
      device.read(BAD - 32, 32, b.range(), 0);
      device.read(BAD + 1, 31, b.range(), 33L * size);
      assertThat(Blocks.mismatch(b.memory(), 0, BAD - 32, 32, size, 5)).isEqualTo(-1);
      assertThat(Blocks.mismatch(b.memory(), 33L * size, BAD + 1, 31, size, 5)).isEqualTo(-1);
      for (long[] range : new long[][] {{BAD, 1}, {BAD - 3, 8}, {BAD - 32, 64}}) {
        NvmeStatusException e =
            catchThrowableOfType(
                NvmeStatusException.class, () -> device.read(range[0], range[1], b.range(), 0));
        assertThat(StatusCode.of(e.status())).isEqualTo(StatusCode.UNRECOVERED_READ_ERROR);
        assertThat(e.slba()).isEqualTo(range[0]);
      }
      assertThat(controller.resets()).isZero();
      device.read(BAD + 1, 8, b.range(), 0);
    }
  }

  @Test
  void failuresAmongOthersLeaveTheQueueInOrder() {
    QueuePair queue = controller.createQueuePair(16);
    int size = first().blockSize();
    DmaBuffer b = buffer(16L * size);
    int[] failed = {0, 0};
    for (int round = 0; round < 50; round++) {
      for (int i = 0; i < 16; i++) {
        long slba = BAD - 8 + i;
        queue.submitIo(
            IoOpcode.READ, first().nsid(), slba, 1, 0, b.range(), (long) i * size, size, slba);
      }
      queue.ring();
      while (queue.inFlight() > 0) {
        queue.poll(
            (q, slot, status) -> {
              failed[0] += status == 0 ? 0 : 1;
              failed[1] += status != 0 && q.exception(slot, status).slba() == BAD ? 1 : 0;
            });
      }
    }
    assertThat(failed).containsExactly(50, 50);
    assertThatThrownBy(() -> device(2).read(BAD, 1, b.range(), 0))
        .isInstanceOf(NvmeStatusException.class);
  }
}
