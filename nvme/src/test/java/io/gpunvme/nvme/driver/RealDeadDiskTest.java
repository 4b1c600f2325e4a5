package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.PciFunction;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * What the controller keeps its blocks in dies while threads write and read: the controller lives
 * and fails every command. Whoever can do that waits for the words "kill disk" in the file that
 * {@code gpunvme.kill-disk} names.
 */
@Tag("qemu")
class RealDeadDiskTest extends ContractRig {
  private static final Path SIGNAL = Path.of(System.getProperty("gpunvme.kill-disk", ""));
  private static final long DEADLINE_SECONDS = 30;

  @Override
  PciFunction function() {
    RealDevice.require();
    assumeTrue(
        !SIGNAL.toString().isEmpty(),
        "nobody kills the disk: no -Dgpunvme.kill-disk=FILE is given");
    return RealDevice.open();
  }

  @Override
  List<Expected> expected() {
    return RealDevice.namespaces();
  }

  @Test
  void everyCommandFailsByItself() throws Exception {
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
      Files.writeString(SIGNAL, "guest: kill disk\n", StandardOpenOption.WRITE);
      for (Future<Throwable> end : ends) {
        assertThat(end.get(DEADLINE_SECONDS, TimeUnit.SECONDS))
            .isInstanceOf(NvmeStatusException.class);
      }
      try (BlockDevice device = device(4)) {
        DmaBuffer b = buffer(MIB);
        List<Runnable> commands =
            List.of(
                () -> device.read(0, 8, b.range(), 0),
                () -> device.write(0, 8, b.range(), 0),
                device::flush);
        for (Runnable command : commands) {
          assertThatThrownBy(() -> pool.submit(command).get(DEADLINE_SECONDS, TimeUnit.SECONDS))
              .hasCauseInstanceOf(NvmeStatusException.class);
        }
      }
    }
    assertThat(controller.resets()).isZero();
    assertThat(controller.logs().smart()).isNotNull();
  }

  private Throwable runUntilItFails(int mark, AtomicInteger alive) {
    hammer(mark, 2000L * mark, new AtomicBoolean(), 1);
    alive.incrementAndGet();
    return catchThrowable(() -> hammer(mark, 2000L * mark, new AtomicBoolean(), Integer.MAX_VALUE));
  }
}
