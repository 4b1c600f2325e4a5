package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;

/** Once compiled, requests without trouble allocate nothing, however many commands they take. */
class BlockDeviceAllocationIT {
  private static final int REQUESTS = 2_000;
  private static final int ROUNDS = 100;

  @Test
  void readsAndWritesAllocateNothing() {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    try (SimRig rig = new SimRig(c -> c.maxTransfer(8192), o -> {})) {
      BlockDevice device = rig.blocks(8);
      long least = Long.MAX_VALUE;
      for (int round = 0; round < ROUNDS && least > 0; round++) {
        long before = threads.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < REQUESTS; i++) {
          device.read(i, 48, rig.buffer.range(), 0);
          device.write(i, 3, rig.buffer.range(), 512);
        }
        least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
      }
      assertThat(least).as("bytes in the best of %d rounds", ROUNDS).isZero();
    }
  }
}
