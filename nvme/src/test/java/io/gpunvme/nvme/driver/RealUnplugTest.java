package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.pci.PciFunction;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The controller is taken away while threads write and read. Whoever can do that waits for the word
 * "unplug" in the file that {@code gpunvme.unplug} names.
 */
@Tag("qemu")
class RealUnplugTest extends ContractRig {
  private static final Path SIGNAL = Path.of(System.getProperty("gpunvme.unplug", ""));
  private static final long DEADLINE_SECONDS = 30;

  /** Before the controller is opened. */
  @BeforeEach
  @Override
  void open() {
    RealDevice.require();
    assumeTrue(
        !SIGNAL.toString().isEmpty(), "nobody unplugs: no file is named by -Dgpunvme.unplug");
    super.open();
  }

  @AfterEach
  @Override
  void close() {
    if (controller != null) {
      super.close();
    }
  }

  @Override
  PciFunction function() {
    return RealDevice.open();
  }

  @Override
  List<Expected> expected() {
    return RealDevice.namespaces();
  }

  @Override
  ControllerOptions.Builder options() {
    return super.options()
        .ioTimeout(Duration.ofSeconds(3))
        .adminTimeout(Duration.ofSeconds(3))
        .recoveryTimeout(Duration.ofSeconds(3));
  }

  @Test
  void unpluggedUnderLoadEveryThreadIsToldInTime() throws Exception {
    int threads = 3;
    AtomicInteger alive = new AtomicInteger();
    List<Future<Throwable>> ends = new ArrayList<>();
    try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
      for (int t = 0; t < threads; t++) {
        int mark = t;
        ends.add(pool.submit(() -> runUntilItFails(mark, alive)));
      }
      while (alive.get() < threads) {
        assertThat(ends).noneMatch(Future::isDone);
        Thread.onSpinWait();
      }
      Files.writeString(SIGNAL, "guest: unplug\n", StandardOpenOption.WRITE);
      for (Future<Throwable> end : ends) {
        assertThat(end.get(DEADLINE_SECONDS, TimeUnit.SECONDS))
            .isInstanceOf(NvmeException.class)
            .satisfies(e -> assertThat(gone(e)).as(e.toString()).isTrue());
      }
    }
    assertThatThrownBy(() -> controller.logs().smart()).isInstanceOf(NvmeException.class);
    controller.close();
    assertThat(Files.exists(folder())).as(folder() + " once it is closed").isFalse();
  }

  private Throwable runUntilItFails(int mark, AtomicInteger alive) {
    hammer(mark, 2000L * mark, new AtomicBoolean(), 1);
    alive.incrementAndGet();
    return catchThrowable(() -> hammer(mark, 2000L * mark, new AtomicBoolean(), Integer.MAX_VALUE));
  }

  /**
   * Gone, or out of service: where nothing answers, PCI Express reads as ones and QEMU's bus
   * without a device as zeroes, which is a controller that makes no sense.
   */
  private static boolean gone(Throwable e) {
    for (Throwable t = e; t != null; t = t.getCause()) {
      if (t instanceof DeviceGoneException || t instanceof ControllerFatalException) {
        return true;
      }
    }
    return false;
  }

  /** The kernel forgets the function when it has it back; that takes it a moment. */
  private Path folder() {
    String name = controller.function().name();
    Path folder =
        Path.of("/sys/bus/pci/devices").resolve(name.replaceFirst("^[a-z]+:", "").split(",")[0]);
    long start = System.nanoTime();
    while (Files.exists(folder)
        && System.nanoTime() - start < TimeUnit.SECONDS.toNanos(DEADLINE_SECONDS)) {
      Thread.onSpinWait();
    }
    return folder;
  }
}
