package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.vfiouser.VfioUserFunction;
import io.gpunvme.nvme.pci.vfiouser.VfioUserOptions;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A server that sleeps hears of commands soon. One that nobody wakes looks every 200 ms: half of
 * the commands would take more than 100 ms.
 */
class VfioUserSleepingServerTest {
  private static final int BLOCK = 512;
  private static final int SAMPLES = 11;

  /** The server falls asleep after 50 ms. */
  private static final long QUIET_NANOS = 150_000_000;

  private static final long SOON_NANOS = 50_000_000;

  @TempDir static Path sockets;

  private ServedController served;
  private VfioUserFunction function;
  private NvmeController controller;
  private DmaBuffer buffer;

  @BeforeEach
  void open() {
    served =
        ServedController.here(
            sockets.resolve("ssd"),
            SimConfig.builder()
                .namespace(NamespaceConfig.ram(1 << 20, BLOCK))
                .workers(2)
                .latencyNanos(0)
                .build());
    function = served.connect(VfioUserOptions.defaults());
    controller = NvmeController.open(function, ControllerOptions.defaults());
    buffer = DmaBuffer.allocate(function, 8 * BLOCK);
  }

  @AfterEach
  void close() {
    buffer.close();
    controller.close();
    served.close();
  }

  private static long median(Runnable command) {
    long[] nanos = new long[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
      LockSupport.parkNanos(QUIET_NANOS);
      long start = System.nanoTime();
      command.run();
      nanos[i] = System.nanoTime() - start;
    }
    Arrays.sort(nanos);
    return nanos[SAMPLES / 2];
  }

  @Test
  void readsWakeIt() {
    try (BlockDevice device = BlockDevice.open(controller, controller.namespace(1), 4)) {
      device.read(0, 1, buffer.range(), 0);
      assertThat(median(() -> device.read(1, 1, buffer.range(), 0))).isLessThan(SOON_NANOS);
    }
  }

  @Test
  void adminCommandsWakeIt() {
    assertThat(median(() -> controller.identify(1, 0))).isLessThan(SOON_NANOS);
  }

  /** It only stores to memory, as a kernel of a GPU does. */
  @Test
  void doesNotSleepWhileSomebodyElseDrivesAPair() {
    try (HostRings rings = new HostRings(function, 16, 16)) {
      ExternalQueuePair pair = controller.createExternalQueuePair(rings);
      ForeignDriver driver = new ForeignDriver(controller, pair, rings);
      assertThat(
              median(
                  () -> {
                    driver.read(1, 1, BLOCK, buffer.busAddress(0));
                    assertThat(driver.await(1)).allMatch(d -> d.status() == 0);
                  }))
          .isLessThan(SOON_NANOS);
      controller.deleteExternalQueuePair(pair);
      assertThat(median(() -> controller.identify(1, 0))).isLessThan(SOON_NANOS);
    }
  }
}
