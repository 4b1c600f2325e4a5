package io.gpunvme.gpu.twin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.queue.QueueCounters;
import io.gpunvme.gpu.twin.TwinJob.Outcome;
import io.gpunvme.nvme.driver.NvmeController;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The device library, compiled for the CPU, on a controller that we did not write: {@code
 * -Dgpunvme.device=vfio:0000:00:04.0} names it. The beginning of its first namespace is written
 * over; every byte is checked.
 */
@Tag("qemu")
@Timeout(240)
class RealTwinTest {
  private static final long PATIENT = 60_000;
  private static final int OPERATIONS = 200;

  private static TwinLibrary library;

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());

  @BeforeAll
  static void compile() {
    assumeTrue(
        System.getProperty("gpunvme.device") != null, "no real controller: -Dgpunvme.device");
    library = TwinLibrary.load();
  }

  @ParameterizedTest
  @CsvSource({"SHARED,4,1,32", "SHARED,4,2,64", "WARP,2,2,32", "BLOCK,1,1,32"})
  void everyBlockIsWhatWasWrittenLast(TwinDriver driver, int threads, int queuePairs, int depth) {
    Device device = Device.open(System.getProperty("gpunvme.device"), TwinDevice.options(PATIENT));
    NvmeController controller = device.controller();
    boolean fits =
        controller.namespace(1).blockSize() == TwinDevice.BLOCK
            && controller.namespace(1).bytes() >= TwinDevice.bytes(threads)
            && controller.maxQueuePairs() >= queuePairs;
    if (!fits) {
      device.close();
    }
    assumeTrue(fits, "needs " + queuePairs + " queue pairs and blocks of 512 bytes");
    try (TwinDevice d =
        new TwinDevice(library, driver, controller, queuePairs, depth, threads, 4)) {
      boolean single = driver != TwinDriver.SHARED;
      Outcome outcome = d.run(seed, OPERATIONS, single);
      QueueCounters c = d.queues.counters();
      assertThat(outcome.wrong() + outcome.timeouts() + outcome.stopped() + outcome.failed())
          .as("seed %d, %s, %s", seed, outcome, c)
          .isZero();
      assertThat(outcome.succeeded()).isGreaterThanOrEqualTo(threads * OPERATIONS);
      assertThat(c.completed()).isEqualTo(c.submitted()).isPositive();
      assertThat(c.timeouts() + c.late() + c.stale() + c.unknown()).isZero();
    }
  }
}
