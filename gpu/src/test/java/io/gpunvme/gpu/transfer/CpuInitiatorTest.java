package io.gpunvme.gpu.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.NumaCalls;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.sim.DoorbellWindow;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.testing.FakeMachine;
import io.gpunvme.testing.ForwardingFunction;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The CPU, with data in its own memory and in what only copies reach. */
class CpuInitiatorTest extends InitiatorContract {
  private static final int MOST_THREADS = 2;

  static Placement[] placements() {
    return new Placement[] {Placement.HOST, Placement.VRAM_DATA};
  }

  @Override
  Accelerator openAccelerator() {
    return new FakeGpu();
  }

  @Override
  Initiator open(NvmeController on, Placement placement, int queues, int depth, int retries) {
    return new CpuInitiator(on, queues, depth, threads(queues), retries);
  }

  @Override
  String name() {
    return "CPU";
  }

  @Override
  DoorbellWindow window() {
    return DoorbellWindow.CPU;
  }

  @Override
  int threads(int queuePairs) {
    return Math.min(queuePairs, MOST_THREADS);
  }

  @Override
  int retriesOfAReset() {
    return 5;
  }

  @Override
  Placement[] supported() {
    return placements();
  }

  /** As many commands as there are slots: a queue is filled before it is looked at. */
  @Test
  void theCommandsOfOnePassAreAnnouncedByOneDoorbellStore() {
    try (CpuInitiator initiator = new CpuInitiator(controller, 2, 32, 1, 0)) {
      TransferPlan plan =
          TransferPlan.of(
              Direction.READ, controller.namespace(1), 4096, List.of(new Extent(0, 64 * 8, 0)));
      TransferReport report = initiator.run(plan, buffer(Placement.HOST), b -> {});
      assertThat(report.commands()).isEqualTo(64);
      assertThat(report.sqDoorbells()).as("one for each queue").isEqualTo(2);
    }
  }

  @Test
  void resetsAtTheWorstMomentsLoseNoCommand() throws InterruptedException {
    SimulatedController fast =
        SimulatedController.create(
            SimConfig.builder()
                .namespace(NamespaceConfig.discarding(16 << 20, 512))
                .latencyNanos(0)
                .shutdownNanos(0)
                .build());
    try (NvmeController resetting = NvmeController.open(fast, ControllerOptions.defaults());
        DeviceBuffer buffer = accelerator().allocatePinned(16 << 20);
        CpuInitiator initiator = new CpuInitiator(resetting, 2, 256, 2, 100)) {
      TransferPlan plan =
          TransferPlan.of(
              Direction.READ, resetting.namespace(1), 1024, List.of(new Extent(0, 32768, 0)));
      AtomicBoolean stop = new AtomicBoolean();
      Thread resetter =
          Thread.ofPlatform()
              .start(
                  () -> {
                    while (!stop.get()) {
                      resetting.reset();
                      LockSupport.parkNanos(500_000);
                    }
                  });
      try {
        // Whatever the resets hit, each run brings every byte or says that it did not.
        for (int i = 0; i < 20; i++) {
          try {
            assertThat(initiator.run(plan, buffer, b -> {}).bytes()).isEqualTo(plan.bytes());
          } catch (NvmeException | InvalidRequestException e) {
            assertThat(e).hasMessageContaining("times");
          }
        }
      } finally {
        stop.set(true);
        resetter.join();
      }
    }
  }

  /** The system gives so many threads and no more: the others' part is done all the same. */
  @Test
  void lanesWithoutAThreadAreTheCallers() {
    fill();
    for (int given = 0; given < 3; given++) {
      AtomicInteger left = new AtomicInteger(given);
      ThreadFactory factory =
          work -> {
            if (left.getAndDecrement() <= 0) {
              throw new OutOfMemoryError("unable to create native thread");
            }
            return Thread.ofPlatform().daemon().unstarted(work);
          };
      DeviceBuffer target = buffer(Placement.HOST);
      try (CpuInitiator initiator = new CpuInitiator(controller, 4, 8, 4, 0, factory)) {
        for (int round = 0; round < 3; round++) {
          target.segment().fill((byte) 0);
          read(initiator, target);
        }
      }
    }
  }

  @Test
  void threadsOfLanesAreOnTheSsdsNodeAndTheCallerIsNot(@TempDir Path folder) {
    BitSet all = NumaCalls.affinity();
    int last = all.length() - 1;
    NumaHome home = new FakeMachine(folder).home(last);
    PciFunction placed =
        new ForwardingFunction(SimulatedController.create(SimConfig.parse("size=16MiB"))) {
          @Override
          public NumaHome home() {
            return home;
          }
        };
    Thread caller = Thread.currentThread();
    // What nobody has begun when the caller is done would be the caller's.
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    Map<Thread, BitSet> seen = new ConcurrentHashMap<>();
    try (NvmeController on = NvmeController.open(placed, ControllerOptions.defaults());
        DeviceBuffer target = accelerator().allocatePinned(16 << 20);
        CpuInitiator initiator = new CpuInitiator(on, 2, 8, 2, 0)) {
      long blocks = on.namespace(1).blocks();
      TransferPlan plan =
          TransferPlan.of(Direction.READ, on.namespace(1), 4096, List.of(new Extent(0, blocks, 0)));
      initiator.run(
          plan,
          List.of(target),
          b -> {
            seen.computeIfAbsent(Thread.currentThread(), _ -> NumaCalls.affinity());
            while (Thread.currentThread() == caller
                && seen.size() < 2
                && System.nanoTime() - deadline < 0) {
              Thread.onSpinWait();
            }
          });
    }
    assertThat(seen.remove(caller)).isEqualTo(all);
    assertThat(seen).as("threads beside the caller").isNotEmpty();
    assertThat(seen.values()).allSatisfy(b -> assertThat(b.stream()).containsExactly(last));
  }

  @Test
  void aLaneThatDiesOfAnErrorSaysSo() {
    try (CpuInitiator initiator = new CpuInitiator(controller, 2, 8, 2, 3)) {
      assertThatThrownBy(
              () ->
                  initiator.run(
                      plan(Direction.READ),
                      buffer(Placement.HOST),
                      b -> {
                        throw new AssertionError("listener");
                      }))
          .isInstanceOf(AssertionError.class)
          .hasMessage("listener");
    }
  }

  @Test
  void aLostCommandIsNoticedWhileOthersKeepTheQueueBusy() {
    try (CpuInitiator initiator = new CpuInitiator(controller, 1, 8, 1, 1)) {
      device.faults().add("drop on read lba=0");
      device.faults().add("delay=20ms on read");
      // 512 commands of 20 ms, 8 at a time, take over a second; the deadline is 250 ms.
      assertThatThrownBy(() -> initiator.run(plan(Direction.READ), buffer(Placement.HOST), b -> {}))
          .isInstanceOf(NvmeTimeoutException.class);
      assertThat(device.stats().commands()).isLessThan(400);
    }
  }

  @Test
  void noQueuePairsAndMoreThreadsThanQueuePairsAreRefused() {
    assertThatThrownBy(() -> new CpuInitiator(controller, 0, 8, 1, 0))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("queue pairs 0 is outside 1..64");
    assertThatThrownBy(() -> new CpuInitiator(controller, 2, 8, 3, 0))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("threads 3");
  }
}
