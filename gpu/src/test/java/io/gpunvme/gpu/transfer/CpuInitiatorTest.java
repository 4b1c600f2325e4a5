package io.gpunvme.gpu.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class CpuInitiatorTest {
  private static final int BYTES = 8 << 20;
  private static final int BLOCKS = BYTES / 512;

  private final SimulatedController device =
      SimulatedController.create(
          SimConfig.builder()
              .namespace(NamespaceConfig.ram(BYTES, 512))
              .latencyNanos(0)
              .workers(1)
              .build());
  private final NvmeController controller =
      NvmeController.open(
          device,
          ControllerOptions.builder()
              .allowWrite(true)
              .ioTimeout(Duration.ofMillis(200))
              .recoveryTimeout(Duration.ofMillis(200))
              .adminTimeout(Duration.ofMillis(500))
              .build());
  private final CpuAccelerator cpu = CpuAccelerator.open();
  private final DeviceBuffer source = cpu.allocate(BYTES);
  private final DeviceBuffer target = cpu.allocate(BYTES);
  private final byte[] data = new byte[BYTES];

  CpuInitiatorTest() {
    new SplittableRandom(42).nextBytes(data);
    source.copyFromHost(MemorySegment.ofArray(data), 0);
  }

  @AfterEach
  void close() {
    controller.close();
    cpu.close();
  }

  private TransferPlan plan(Direction direction) {
    return TransferPlan.of(
        direction, controller.namespace(1), 16384, List.of(new Extent(0, BLOCKS, 0)));
  }

  private byte[] arrived() {
    byte[] bytes = new byte[BYTES];
    target.copyToHost(0, MemorySegment.ofArray(bytes));
    return bytes;
  }

  @Test
  void commandsOfOnePlanReadToSeveralBuffers() {
    TransferPlan.Builder plan =
        TransferPlan.builder(Direction.READ, controller.namespace(1), 16384);
    plan.add(0, BLOCKS / 2, 1, 0);
    plan.add(BLOCKS / 2, BLOCKS - BLOCKS / 2, 0, BYTES / 2);
    try (CpuInitiator initiator = new CpuInitiator(controller, 3, 16, 2, 3);
        DeviceBuffer other = cpu.allocatePinned(BYTES)) {
      initiator.run(plan(Direction.WRITE), source, TransferListener.NONE);
      initiator.run(plan.build(), List.of(target, other), TransferListener.NONE);
      byte[] half = new byte[BYTES / 2];
      other.copyToHost(0, MemorySegment.ofArray(half));
      assertThat(half).isEqualTo(Arrays.copyOf(data, BYTES / 2));
      target.copyToHost(BYTES / 2, MemorySegment.ofArray(half));
      assertThat(half).isEqualTo(Arrays.copyOfRange(data, BYTES / 2, BYTES));

      assertThatThrownBy(() -> initiator.run(plan.build(), target, TransferListener.NONE))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("2 buffers, but got 1");
      try (DeviceBuffer small = cpu.allocatePinned(4096)) {
        assertThatThrownBy(
                () -> initiator.run(plan.build(), List.of(target, small), TransferListener.NONE))
            .isInstanceOf(InvalidRequestException.class)
            .hasMessageContaining("of a buffer of 4096 bytes");
      }
    }
  }

  @Test
  void writesAndReadsOverSeveralQueuesAndReportsWhatItDid() {
    try (CpuInitiator initiator = new CpuInitiator(controller, 3, 16, 2, 3)) {
      LongAdder moved = new LongAdder();
      TransferReport w = initiator.run(plan(Direction.WRITE), source, moved::add);
      TransferReport r = initiator.run(plan(Direction.READ), target, moved::add);
      assertThat(arrived()).isEqualTo(data);
      assertThat(moved.sum()).isEqualTo(2L * BYTES);
      assertThat(w.bytes()).isEqualTo(BYTES);
      assertThat(r.commands()).isEqualTo(BYTES / 16384);
      assertThat(r.sqDoorbells()).isBetween(1L, r.commands());
      assertThat(r.cqDoorbells()).isBetween(1L, r.commands());
      assertThat(r.latency().getTotalCount()).isEqualTo(r.commands());
      assertThat(r.latencyNanos(50)).isPositive().isLessThanOrEqualTo(r.nanos());
      assertThat(r.path()).isEqualTo("direct");
      assertThat(r.initiator()).isEqualTo("CPU");
      assertThat(r.placement()).isEqualTo(Placement.HOST);
      assertThat(r.queuePairs()).isEqualTo(3);
      assertThat(r.depth()).isEqualTo(16);
      assertThat(r.threads()).isEqualTo(2);
      assertThat(r.retries()).isZero();
      assertThat(r.recoveries()).isZero();
      assertThat(r.gigabytesPerSecond()).isPositive();
    }
  }

  /** As many commands as there are slots: a queue is filled before it is looked at. */
  @Test
  void theCommandsOfOnePassAreAnnouncedByOneDoorbellStore() {
    try (CpuInitiator initiator = new CpuInitiator(controller, 2, 32, 1, 0)) {
      TransferPlan plan =
          TransferPlan.of(
              Direction.READ, controller.namespace(1), 4096, List.of(new Extent(0, 64 * 8, 0)));
      TransferReport report = initiator.run(plan, target, b -> {});
      assertThat(report.commands()).isEqualTo(64);
      assertThat(report.sqDoorbells()).as("one for each queue").isEqualTo(2);
    }
  }

  @Test
  void aRetryableErrorIsRepeatedAndAFinalOneIsThrown() {
    try (CpuInitiator initiator = new CpuInitiator(controller, 2, 8, 2, 2)) {
      initiator.run(plan(Direction.WRITE), source, b -> {});
      device.faults().add("status=media/unrecovered-read-error on read lba=100 count=2");
      TransferReport report = initiator.run(plan(Direction.READ), target, b -> {});
      assertThat(report.retries()).isEqualTo(2);
      assertThat(arrived()).isEqualTo(data);

      device.faults().clear();
      device.faults().add("status=media/unrecovered-read-error dnr on read lba=100");
      assertThatThrownBy(() -> initiator.run(plan(Direction.READ), target, b -> {}))
          .isInstanceOfSatisfying(
              NvmeStatusException.class,
              e -> {
                assertThat(StatusCode.of(e.status())).isEqualTo(StatusCode.UNRECOVERED_READ_ERROR);
                assertThat(e.retryable()).isFalse();
                assertThat(e.slba()).isEqualTo(96);
              });
      device.faults().clear();
      initiator.run(plan(Direction.READ), target, b -> {});
      assertThat(arrived()).isEqualTo(data);
    }
  }

  @Test
  void aLostCompletionIsRecoveredAndTheTransferGoesOn() {
    try (CpuInitiator initiator = new CpuInitiator(controller, 2, 8, 2, 3)) {
      initiator.run(plan(Direction.WRITE), source, b -> {});
      device.faults().add("drop on read lba=4000 count=1");
      TransferReport report = initiator.run(plan(Direction.READ), target, b -> {});
      assertThat(report.recoveries()).isPositive();
      assertThat(arrived()).isEqualTo(data);
    }
  }

  @Test
  void aResetByAnotherThreadOnlyDelaysTheTransfer() throws InterruptedException {
    try (CpuInitiator initiator = new CpuInitiator(controller, 2, 8, 2, 5)) {
      initiator.run(plan(Direction.WRITE), source, b -> {});
      Thread resetter = Thread.ofPlatform().start(controller::reset);
      for (int i = 0; i < 20; i++) {
        initiator.run(plan(Direction.READ), target, b -> {});
      }
      resetter.join();
      initiator.run(plan(Direction.READ), target, b -> {});
      assertThat(arrived()).isEqualTo(data);
    }
  }

  @Test
  void aDeviceThatDisappearsIsATypedErrorAndNothingHangs() {
    try (CpuInitiator initiator = new CpuInitiator(controller, 2, 8, 2, 3)) {
      device.faults().add("gone after=50");
      assertThatThrownBy(
              () -> {
                for (int i = 0; i < 10; i++) {
                  initiator.run(plan(Direction.READ), target, b -> {});
                }
              })
          .isInstanceOf(DeviceGoneException.class);
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
        DeviceBuffer buffer = cpu.allocate(16 << 20);
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

  @Test
  void aLaneThatDiesOfAnErrorSaysSo() {
    try (CpuInitiator initiator = new CpuInitiator(controller, 2, 8, 2, 3)) {
      assertThatThrownBy(
              () ->
                  initiator.run(
                      plan(Direction.READ),
                      target,
                      b -> {
                        throw new AssertionError("listener");
                      }))
          .isInstanceOf(AssertionError.class)
          .hasMessage("listener");
    }
  }

  @Test
  void aCommandThatNeverCompletesIsATimeout() {
    try (CpuInitiator initiator = new CpuInitiator(controller, 1, 8, 1, 1)) {
      device.faults().add("drop on read lba=4000");
      assertThatThrownBy(() -> initiator.run(plan(Direction.READ), target, b -> {}))
          .isInstanceOf(NvmeTimeoutException.class)
          .hasMessageContaining("200 ms");
    }
  }

  @Test
  void aLostCommandIsNoticedWhileOthersKeepTheQueueBusy() {
    try (CpuInitiator initiator = new CpuInitiator(controller, 1, 8, 1, 1)) {
      device.faults().add("drop on read lba=0");
      device.faults().add("delay=20ms on read");
      // 512 commands of 20 ms, 8 at a time, take over a second; the deadline is 200 ms.
      assertThatThrownBy(() -> initiator.run(plan(Direction.READ), target, b -> {}))
          .isInstanceOf(NvmeTimeoutException.class);
      assertThat(device.stats().commands()).isLessThan(400);
    }
  }

  @Test
  void aVanishedDeviceIsNoticedLongBeforeTheTimeout() {
    SimulatedController slow =
        SimulatedController.create(
            SimConfig.builder().namespace(NamespaceConfig.ram(BYTES, 512)).build());
    try (NvmeController patient =
            NvmeController.open(
                slow, ControllerOptions.builder().ioTimeout(Duration.ofMinutes(10)).build());
        CpuInitiator initiator = new CpuInitiator(patient, 1, 8, 1, 3)) {
      slow.faults().add("gone after=20");
      TransferPlan plan =
          TransferPlan.of(
              Direction.READ, patient.namespace(1), 4096, List.of(new Extent(0, BLOCKS, 0)));
      assertThatThrownBy(() -> initiator.run(plan, target, b -> {}))
          .isInstanceOf(DeviceGoneException.class);
    }
  }

  @Test
  void aControllerOpenedReadOnlyIsNotWritten() {
    SimulatedController device =
        SimulatedController.create(
            SimConfig.builder().namespace(NamespaceConfig.ram(BYTES, 512)).build());
    try (NvmeController readOnly = NvmeController.open(device, ControllerOptions.defaults());
        CpuInitiator initiator = new CpuInitiator(readOnly, 1, 8, 1, 3)) {
      assertThatThrownBy(() -> initiator.run(plan(Direction.WRITE), source, b -> {}))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("--allow-write");
    }
  }

  @Test
  void aListenerThatThrowsEndsTheTransferWithNothingOutstanding() {
    try (CpuInitiator initiator = new CpuInitiator(controller, 2, 8, 2, 3)) {
      assertThatThrownBy(
              () ->
                  initiator.run(
                      plan(Direction.READ),
                      target,
                      b -> {
                        throw new IllegalStateException("listener");
                      }))
          .hasMessage("listener");
      initiator.run(plan(Direction.WRITE), source, b -> {});
      initiator.run(plan(Direction.READ), target, b -> {});
      assertThat(arrived()).isEqualTo(data);
    }
  }

  @Test
  void anInterruptCancelsTheTransfer() {
    try (CpuInitiator initiator = new CpuInitiator(controller, 1, 8, 1, 3)) {
      Thread.currentThread().interrupt();
      device.faults().add("delay=5ms on read");
      assertThatThrownBy(() -> initiator.run(plan(Direction.READ), target, b -> {}))
          .isInstanceOf(NvmeException.class)
          .hasMessageContaining("cancelled");
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  @Test
  void impossibleShapesAndBuffersAreRefused() {
    assertThatThrownBy(() -> new CpuInitiator(controller, 0, 8, 1, 0))
        .isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> new CpuInitiator(controller, 2, 8, 3, 0))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("threads 3");
    assertThatThrownBy(() -> new CpuInitiator(controller, 2, 1 << 20, 1, 0))
        .isInstanceOf(InvalidRequestException.class);
    try (CpuInitiator initiator = new CpuInitiator(controller, 1, 8, 1, 0);
        DeviceBuffer small = cpu.allocate(4096)) {
      assertThatThrownBy(() -> initiator.run(plan(Direction.READ), small, b -> {}))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("4096");
    }
  }
}
