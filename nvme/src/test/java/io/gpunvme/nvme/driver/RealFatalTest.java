package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.PciFunction;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * A real controller behind an IOMMU that cannot fetch commands: its memory is not where it was told
 * to be. It sets CSTS.CFS then and does nothing more until it is reset.
 */
@Tag("qemu")
class RealFatalTest extends ContractRig {
  private static final long DEADLINE_SECONDS = 30;

  private UnreachableMemory function;
  private boolean fromTheStart;

  @Override
  PciFunction function() {
    function = new UnreachableMemory(RealDevice.open(), fromTheStart);
    return function;
  }

  @Override
  List<Expected> expected() {
    return RealDevice.namespaces();
  }

  @Override
  ControllerOptions.Builder options() {
    // Far above the deadline: the status must be seen, not a timeout.
    return super.options()
        .ioTimeout(Duration.ofMinutes(10))
        .adminTimeout(Duration.ofMinutes(10))
        .retries(1);
  }

  @Test
  void withAnAdminQueueOutOfReachOpeningFailsAndTheNextOneWorks() throws Exception {
    controller.close();
    fromTheStart = true;
    assertThatThrownBy(() -> inTime(() -> NvmeController.open(function(), options().build())))
        .hasCauseInstanceOf(ControllerFatalException.class)
        .hasMessageContaining("CSTS.CFS");
    fromTheStart = false;
    reopen(o -> {});
    works();
  }

  @Test
  void anIoQueueOutOfReachFailsAloneAndTheNextOneWorks() throws Exception {
    DmaBuffer b = buffer(4096);
    function.wrong = true;
    BlockDevice bad = device(4);
    function.wrong = false;
    try (bad) {
      assertThatThrownBy(
              () ->
                  inTime(
                      () -> {
                        bad.read(3, 1, b.range(), 0);
                        return true;
                      }))
          .hasCauseInstanceOf(ControllerFatalException.class)
          .hasMessageContaining("CSTS.CFS")
          .hasMessageContaining("LBA 3");
    }
    assertThat(controller.resets()).isEqualTo(2);
    works();
  }

  @Test
  void underLoadTheOthersGoOn() throws Exception {
    function.wrong = true;
    HostRings rings = new HostRings(function, 4, 4);
    function.wrong = false;
    ExternalQueuePair pair = controller.createExternalQueuePair(rings);
    int threads = 2;
    AtomicBoolean stop = new AtomicBoolean();
    AtomicInteger[] rounds = new AtomicInteger[threads];
    try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
      List<Future<Boolean>> ends = new ArrayList<>();
      for (int t = 0; t < threads; t++) {
        BlockDevice device = device(8);
        DmaBuffer b = buffer(MIB);
        AtomicInteger count = rounds[t] = new AtomicInteger();
        long base = 4000L * t;
        ends.add(pool.submit(() -> load(device, b, base, count, stop)));
      }
      try {
        await("two rounds", () -> least(rounds) >= 2);
        new ForeignDriver(controller, pair, rings).read(1, first().nsid(), 512, 0);
        await("a reset", () -> controller.resets() > 0);
        int before = most(rounds);
        await("three more rounds", () -> least(rounds) >= before + 3);
      } finally {
        stop.set(true);
      }
      for (Future<Boolean> end : ends) {
        assertThat(end.get(DEADLINE_SECONDS, TimeUnit.SECONDS)).isTrue();
      }
    }
    assertThat(controller.resets()).isEqualTo(1);
    assertThat(pair.state()).isEqualTo(QueuePair.State.BROKEN);
    controller.deleteExternalQueuePair(pair);
    rings.close();
    works();
  }

  /** Writes and reads back, until told to stop. */
  private boolean load(
      BlockDevice device, DmaBuffer b, long base, AtomicInteger count, AtomicBoolean stop) {
    int size = device.namespace().blockSize();
    long blocks = b.size() / size;
    while (!stop.get()) {
      int mark = count.get();
      Blocks.fill(b.memory(), 0, base, blocks, size, mark);
      device.write(base, blocks, b.range(), 0);
      b.memory().fill((byte) 0);
      device.read(base, blocks, b.range(), 0);
      assertThat(Blocks.mismatch(b.memory(), 0, base, blocks, size, mark)).isEqualTo(-1);
      count.incrementAndGet();
    }
    device.close();
    return true;
  }

  private static int least(AtomicInteger[] rounds) {
    return Arrays.stream(rounds).mapToInt(AtomicInteger::get).min().orElseThrow();
  }

  private static int most(AtomicInteger[] rounds) {
    return Arrays.stream(rounds).mapToInt(AtomicInteger::get).max().orElseThrow();
  }

  private static void await(String what, BooleanSupplier condition) {
    long start = System.nanoTime();
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime() - start)
          .as(what)
          .isLessThan(TimeUnit.SECONDS.toNanos(DEADLINE_SECONDS));
      Thread.onSpinWait();
    }
  }

  private void works() {
    try (BlockDevice device = device(4)) {
      roundTrip(device, 100, 64, buffer(MIB), 0);
    }
  }

  private static <T> T inTime(Callable<T> what) throws Exception {
    try (ExecutorService pool = Executors.newSingleThreadExecutor()) {
      Future<T> end = pool.submit(what);
      return end.get(DEADLINE_SECONDS, TimeUnit.SECONDS);
    }
  }
}
