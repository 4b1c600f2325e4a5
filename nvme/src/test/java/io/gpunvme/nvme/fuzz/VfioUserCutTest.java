package io.gpunvme.nvme.fuzz;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.Footprint;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.DoorbellPoller;
import io.gpunvme.nvme.pci.vfiouser.VfioUserFunction;
import io.gpunvme.nvme.pci.vfiouser.VfioUserOptions;
import io.gpunvme.nvme.vfiouser.SleepRegion;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.sim.serve.VfioUserServer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A server cuts the files that its client has mapped: touching them is SIGBUS in the client. To the
 * client it is a device that is gone, and the next one works.
 */
class VfioUserCutTest {
  /** Often enough for the compilers to have had their turn. */
  private static final int ROUNDS = 8;

  private static final int WARM = 2000;
  private static final int LESS_WARM = 50;
  private static final int DOORBELLS = 0;

  /** For reads that were on their way when the relay of doorbells ended. */
  private static final Duration TIMEOUT = Duration.ofSeconds(1);

  private static final long SOON_NANOS = 5_000_000_000L;

  @TempDir Path folder;

  private final Logger log = Logger.getLogger("io.gpunvme.nvme");
  private final CuttableRegions regions = new CuttableRegions(DOORBELLS);
  private SimulatedController embedded;
  private VfioUserServer server;
  private HostileProxy proxy;
  private Footprint idle;

  private VfioUserFunction function;
  private NvmeController controller;

  /** The driver warns of each server that breaks its word. */
  @BeforeEach
  void start() {
    log.setLevel(Level.OFF);
    embedded =
        SimulatedController.create(
            SimConfig.builder()
                .namespace(NamespaceConfig.ram(1 << 20, 512))
                .latencyNanos(0)
                .ioQueues(4)
                .build());
    server = VfioUserServer.start(embedded, folder.resolve("ssd"));
    proxy = new HostileProxy(folder.resolve("hostile"), server.socket());
    proxy.cuttable(regions);
    idle = Footprint.here();
  }

  @AfterEach
  void end() {
    open();
    assertThat(controller.namespaces()).hasSize(1);
    controller.close();
    regions.close();
    idle.awaitHere("after all rounds");
    proxy.close();
    server.close();
    embedded.close();
    log.setLevel(null);
  }

  private void open() {
    function = VfioUserFunction.open(proxy.path(), VfioUserOptions.defaults());
    controller =
        NvmeController.open(function, ControllerOptions.builder().ioTimeout(TIMEOUT).build());
  }

  private static int warm(int round) {
    return round == 0 ? WARM : LESS_WARM;
  }

  /** What is done again and again ends soon, with the exception of a device that is gone. */
  private static void gone(Runnable again) {
    long end = System.nanoTime() + SOON_NANOS;
    Throwable thrown = null;
    while (thrown == null && System.nanoTime() < end) {
      thrown = catchThrowable(again::run);
    }
    assertThat(thrown).isInstanceOf(DeviceGoneException.class);
  }

  @Test
  void readsWithoutDoorbells() {
    for (int round = 0; round < ROUNDS; round++) {
      open();
      try (DmaBuffer buffer = DmaBuffer.allocate(function, 4096);
          BlockDevice device = BlockDevice.open(controller, controller.namespace(1), 4)) {
        for (int i = 0; i < warm(round); i++) {
          device.read(i % 100, 8, buffer.range(), 0);
        }
        regions.cut(DOORBELLS);
        assertThatThrownBy(() -> device.read(0, 8, buffer.range(), 0))
            .isInstanceOf(DeviceGoneException.class);
        gone(() -> device.read(0, 8, buffer.range(), 0));
      }
      controller.close();
    }
  }

  @Test
  void adminCommandsWithoutDoorbells() {
    for (int round = 0; round < ROUNDS; round++) {
      open();
      for (int i = 0; i < warm(round) / 10; i++) {
        controller.identify(1, 0);
      }
      regions.cut(DOORBELLS);
      assertThatThrownBy(() -> controller.identify(1, 0)).isInstanceOf(DeviceGoneException.class);
      assertThatThrownBy(() -> controller.createQueuePair(4))
          .isInstanceOf(DeviceGoneException.class);
      controller.close();
    }
  }

  @Test
  void shutdownWithoutDoorbells() {
    for (int round = 0; round < ROUNDS; round++) {
      open();
      // Which the controller is told to delete.
      controller.createQueuePair(4);
      regions.cut(DOORBELLS);
      controller.close();
    }
  }

  @Test
  void aCutWhileThreadsRead() throws InterruptedException {
    for (int round = 0; round < ROUNDS; round++) {
      open();
      try (DmaBuffer buffer = DmaBuffer.allocate(function, 4096);
          BlockDevice device = BlockDevice.open(controller, controller.namespace(1), 4)) {
        int pause = round;
        Thread cutter =
            Thread.ofPlatform()
                .start(
                    () -> {
                      try {
                        Thread.sleep(pause);
                      } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                      }
                      regions.cut(DOORBELLS);
                    });
        gone(() -> device.read(0, 8, buffer.range(), 0));
        cutter.join();
      }
      controller.close();
    }
  }

  @Test
  void readsWithoutThePageOfAServerThatSleeps() {
    for (int round = 0; round < ROUNDS; round++) {
      open();
      try (DmaBuffer buffer = DmaBuffer.allocate(function, 4096);
          BlockDevice device = BlockDevice.open(controller, controller.namespace(1), 4)) {
        for (int i = 0; i < LESS_WARM; i++) {
          device.read(i % 100, 8, buffer.range(), 0);
        }
        regions.cut(SleepRegion.INDEX);
        gone(() -> device.read(0, 8, buffer.range(), 0));
      }
      controller.close();
    }
  }

  @Test
  void initiatorsThatStoreInSilenceWithoutThatPage() {
    for (int round = 0; round < ROUNDS; round++) {
      open();
      DoorbellPoller poller = function.poller();
      regions.cut(SleepRegion.INDEX);
      poller.keepAwake().run();
      assertThat(function.config().read(0, 2)).isEqualTo(0xFFFF);
      controller.close();
    }
  }
}
