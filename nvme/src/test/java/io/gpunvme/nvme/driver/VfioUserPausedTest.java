package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.vfiouser.VfioUserFunction;
import io.gpunvme.nvme.pci.vfiouser.VfioUserOptions;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * A server that is paused in the middle of a read goes on when it wakes. Whoever was told that the
 * read has failed has a buffer that does not change any more, or knows that it may.
 */
@Timeout(60)
class VfioUserPausedTest {
  private static final int BYTES = 128 << 10;
  private static final byte UNTOUCHED = 0x55;
  private static final Duration PATIENCE = Duration.ofSeconds(2);
  private static final int GONE = 0xFFFF;

  /** Of a command: long enough for a pause in the middle of one. */
  private static final String SLOW = "size=1MiB,latency=2s";

  private static final int SOME_MILLIS = 200;

  @TempDir Path folder;

  private final Logger log = Logger.getLogger("io.gpunvme.nvme");

  @BeforeEach
  void quiet() {
    log.setLevel(Level.OFF);
  }

  @AfterEach
  void loud() {
    log.setLevel(null);
  }

  /** A read that is under way in a server of its own. */
  private static final class PausedRead implements AutoCloseable {
    final ServedController served;
    final VfioUserFunction function;
    final NvmeController controller;
    final BlockDevice device;
    final DmaBuffer buffer;
    final CompletableFuture<Throwable> failure;

    PausedRead(Path socket) throws Exception {
      served = ServedController.apart(socket, SLOW);
      function = served.connect(VfioUserOptions.defaults().withTimeout(PATIENCE));
      controller =
          NvmeController.open(
              function,
              ControllerOptions.builder()
                  .ioTimeout(Duration.ofMillis(1500))
                  .recoveryTimeout(Duration.ofMillis(SOME_MILLIS))
                  .build());
      device = BlockDevice.open(controller, controller.namespace(1), 4);
      buffer = DmaBuffer.allocate(function, BYTES);
      buffer.memory().fill(UNTOUCHED);
      int blocks = BYTES / controller.namespace(1).blockSize();
      failure =
          CompletableFuture.supplyAsync(
              () -> catchThrowable(() -> device.read(0, blocks, buffer.range(), 0)));
      Thread.sleep(SOME_MILLIS);
      served.signal("STOP");
    }

    /** What the buffer holds, in a number. */
    int bytes() {
      return Arrays.hashCode(buffer.memory().toArray(ValueLayout.JAVA_BYTE));
    }

    @Override
    public void close() throws IOException {
      try (served;
          controller;
          device;
          buffer) {
        // It may be paused still.
        served.kill();
      }
      // It closes the socket when the server has ended, if nobody did before.
      while (Thread.getAllStackTraces().keySet().stream()
          .anyMatch(t -> t.getName().equals(function.name()))) {
        Thread.onSpinWait();
      }
    }
  }

  @Test
  void theFailureIsToldWhenTheServerHasLetGo() throws Exception {
    try (PausedRead read = new PausedRead(folder.resolve("ssd"))) {
      // All ones when the server is given up, while the read still waits for a proof.
      while (read.function.config().read(0, 2) != GONE) {
        Thread.sleep(1);
      }
      assertThat(read.failure).isNotDone();
      read.served.signal("CONT");
      Throwable told = read.failure.join();
      int then = read.bytes();
      assertThat(told).isInstanceOf(DeviceGoneException.class);
      assertThat(told.getMessage()).doesNotContain("may still write");
      assertThat(read.function.inDoubt()).isNull();
      // Longer than the server needs for what it was told.
      Thread.sleep(2 * SOME_MILLIS);
      assertThat(read.bytes()).isEqualTo(then);
    }
  }

  @Test
  void withoutAProofItIsSaidUntilThereIsOne() throws Exception {
    try (PausedRead read = new PausedRead(folder.resolve("ssd"))) {
      Throwable told = read.failure.join();
      assertThat(told).isInstanceOf(DeviceGoneException.class);
      assertThat(told.getMessage()).contains("may still write to memory that it was given");
      assertThat(read.function.inDoubt()).isNotNull();
      Throwable again = catchThrowable(() -> read.device.read(0, 1, read.buffer.range(), 0));
      assertThat(again).isInstanceOf(DeviceGoneException.class);
      read.device.close();
      read.controller.close();
      assertThat(read.function.inDoubt()).as("after close").isNotNull();
      read.served.signal("CONT");
      while (read.function.inDoubt() != null) {
        Thread.sleep(1);
      }
      int then = read.bytes();
      Thread.sleep(2 * SOME_MILLIS);
      assertThat(read.bytes()).isEqualTo(then);
    }
  }
}
