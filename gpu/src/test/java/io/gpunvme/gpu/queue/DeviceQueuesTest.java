package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.PolicyAccelerator;
import io.gpunvme.gpu.queue.DeviceLayout.Errors;
import io.gpunvme.gpu.queue.DeviceLayout.Queue;
import io.gpunvme.gpu.queue.DeviceLayout.Slot;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueuePair.State;
import io.gpunvme.nvme.driver.RecoveryOutcome;
import io.gpunvme.nvme.driver.RecoveryOutcome.Rung;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.testing.FakeMachine;
import io.gpunvme.testing.ForwardingFunction;
import io.gpunvme.testing.MemoryPolicies;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The structures that kernels get, looked at as the kernels do: by address. */
class DeviceQueuesTest {
  private final SimulatedController device =
      SimulatedController.create(SimConfig.builder().workers(1).mqes(127).build());
  private final NvmeController controller =
      NvmeController.open(
          device, ControllerOptions.builder().ioTimeout(Duration.ofMillis(1234)).build());
  private final Accelerator accelerator = new FakeGpu();

  @AfterEach
  void close() {
    controller.close();
    accelerator.close();
  }

  private static MemorySegment at(long address, long bytes) {
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }

  private static MemorySegment struct(DeviceQueue queue) {
    return at(queue.deviceAddress(), Queue.SIZE);
  }

  private static MemorySegment array(DeviceQueue queue, long field, long bytes) {
    return at(DeviceLayout.getLong(struct(queue), field), bytes);
  }

  private DeviceQueues exclusive(int count, int depth) {
    return new DeviceQueues(
        controller, accelerator, DeviceQueueOptions.exclusive(Placement.HOST, count, depth));
  }

  @Test
  void theStructuresDescribeTheQueues() {
    try (DeviceQueues queues = exclusive(3, 20)) {
      Set<Long> addresses = new HashSet<>();
      for (int i = 0; i < 3; i++) {
        DeviceQueue queue = queues.queues().get(i);
        MemorySegment q = struct(queue);
        assertThat(queue.deviceAddress()).isEqualTo(queues.deviceAddress() + i * 512L);
        assertThat(queue.deviceAddress() % 128).isZero();
        assertThat(DeviceLayout.getInt(q, Queue.QID)).isEqualTo(queue.pair().qid());
        assertThat(DeviceLayout.getInt(q, Queue.DEPTH)).isEqualTo(20);
        assertThat(1 << DeviceLayout.getInt(q, Queue.SQ_BITS)).isEqualTo(queue.pair().sqSize());
        assertThat(1 << DeviceLayout.getInt(q, Queue.CQ_BITS)).isEqualTo(queue.pair().cqSize());
        assertThat(DeviceLayout.getInt(q, Queue.SLOT_BITS)).isEqualTo(5);
        assertThat(DeviceLayout.getInt(q, Queue.FLAGS)).isEqualTo(Queue.DOORBELLS_IN_MEMORY);
        assertThat(DeviceLayout.getLong(q, Queue.TIMEOUT_NS)).isEqualTo(1_234_000_000L);
        long sq = DeviceLayout.getLong(q, Queue.SQ_DOORBELL);
        assertThat(DeviceLayout.getLong(q, Queue.CQ_DOORBELL)).isEqualTo(sq + 4);
        for (long field : List.of(Queue.SQ, Queue.CQ, Queue.SLOTS, Queue.INFOS, Queue.ERRORS)) {
          addresses.add(DeviceLayout.getLong(q, field));
        }
        MemorySegment log = array(queue, Queue.ERRORS, Errors.RECORDS);
        assertThat(DeviceLayout.getInt(log, Errors.CAPACITY)).isPositive();
        assertThat(DeviceLayout.getInt(q, Queue.FREE_TAIL)).isEqualTo(20);
      }
      assertThat(addresses).hasSize(15).allMatch(a -> a % 16 == 0);
    }
  }

  @Test
  void ofASharedQueueEveryBitIsFree() {
    try (DeviceQueues queues =
        new DeviceQueues(
            controller, accelerator, DeviceQueueOptions.shared(Placement.VRAM, 1, 64))) {
      DeviceQueue queue = queues.queues().getFirst();
      assertThat(DeviceLayout.getInt(struct(queue), Queue.FLAGS))
          .isEqualTo(Queue.DOORBELLS_IN_MEMORY | Queue.SHARED | Queue.RINGS_IN_GPU_MEMORY);
      assertThat(DeviceLayout.getLong(array(queue, Queue.FREE_SLOTS, 8), 0)).isEqualTo(-1L);
      assertThat(DeviceLayout.getInt(struct(queue), Queue.FREE_TAIL)).isZero();
      assertThat(queues.shared()).isTrue();
    }
  }

  @Test
  void ringsInHostMemoryAreOnTheSsdsNode(@TempDir Path folder) {
    MemoryPolicies.needNode0();
    NumaHome home = new FakeMachine(folder).home(0);
    PciFunction placed =
        new ForwardingFunction(SimulatedController.create(SimConfig.parse("size=1MiB"))) {
          @Override
          public NumaHome home() {
            return home;
          }
        };
    try (PolicyAccelerator cpu = new PolicyAccelerator();
        NvmeController on = NvmeController.open(placed, ControllerOptions.defaults())) {
      int before = cpu.placed().size();
      try (DeviceQueues queues =
          new DeviceQueues(on, cpu, DeviceQueueOptions.exclusive(Placement.HOST, 1, 4))) {
        assertThat(queues.queues()).hasSize(1);
        // Beside them there is the word that stops kernels, which is the accelerator's.
        assertThat(cpu.placed().subList(before, cpu.placed().size()))
            .filteredOn(p -> p)
            .as("submissions and completions")
            .hasSize(2);
      }
    }
  }

  /** So that completions from before a recovery are known as stale. */
  @Test
  void generationsOutliveARecovery() {
    try (DeviceQueues queues = exclusive(1, 4)) {
      DeviceQueue queue = queues.queues().getFirst();
      MemorySegment slots = array(queue, Queue.SLOTS, 16);
      DeviceLayout.setInt(slots, 4, Slot.QUARANTINED | 0x0029);
      DeviceLayout.setInt(struct(queue), Queue.QUARANTINED, 1);
      DeviceLayout.setInt(struct(queue), Queue.SQ_TAIL, 99);
      DeviceLayout.setInt(struct(queue), Queue.CQ_HEAD, 98);
      DeviceLayout.setLong(struct(queue), Queue.SUBMITTED, 99);
      array(queue, Queue.SQ, 64).fill((byte) 7);
      array(queue, Queue.CQ, 16).fill((byte) 7);

      assertThat(queue.quarantined()).isEqualTo(1);
      assertThat(queues.recover()).singleElement().matches(RecoveryOutcome::recovered);

      assertThat(queue.quarantined()).isZero();
      assertThat(DeviceLayout.getInt(slots, 4)).isEqualTo(Slot.FREE | 0x0029);
      MemorySegment free = array(queue, Queue.FREE_SLOTS, 16);
      assertThat(DeviceLayout.getInt(free, 4)).isEqualTo(0x002D);
      assertThat(DeviceLayout.getInt(struct(queue), Queue.SQ_TAIL)).isZero();
      assertThat(DeviceLayout.getInt(struct(queue), Queue.CQ_HEAD)).isZero();
      assertThat(DeviceLayout.getInt(struct(queue), Queue.FREE_TAIL)).isEqualTo(4);
      assertThat(queue.counters().submitted()).as("counters stay").isEqualTo(99);
      assertThat(array(queue, Queue.SQ, 64).mismatch(MemorySegment.ofArray(new byte[64])))
          .isEqualTo(-1);
      assertThat(queues.recover()).as("nothing left to do").isEmpty();
    }
  }

  @Test
  void errorsAreReadOnceAndCountedBeyondTheLog() {
    try (DeviceQueues queues = exclusive(1, 4)) {
      DeviceQueue queue = queues.queues().getFirst();
      MemorySegment log = array(queue, Queue.ERRORS, QueueSizes.errorBytes());
      DeviceLayout.setInt(log, Errors.COUNT, 300);
      long second = Errors.RECORDS + Errors.RECORD_SIZE;
      DeviceLayout.setInt(log, second + Errors.KIND, 1);
      DeviceLayout.setInt(log, second + Errors.STATUS, 0x80);
      DeviceLayout.setInt(log, second + Errors.QID, 3);
      DeviceLayout.setInt(log, second + Errors.CID, 17);
      DeviceLayout.setLong(log, second + Errors.SLBA, 8);
      DeviceLayout.setInt(log, second + Errors.OPCODE, 2);
      DeviceLayout.setInt(log, second + Errors.USER, 5);

      DeviceErrors errors = queues.takeErrors();

      assertThat(errors.total()).isEqualTo(300);
      assertThat(errors.records()).hasSize(255);
      assertThat(errors.records().get(1))
          .isEqualTo(new DeviceError(DeviceError.Kind.STATUS, 0x80, 3, 17, 8, 2, 5))
          .hasToString("Read at LBA 8 failed: LBA Out of Range (SCT 0h, SC 80h) (queue 3, CID 17)");
      assertThat(queues.takeErrors().total()).isZero();
    }
  }

  @Test
  void theStopWordIsWhereTheKernelsLook() {
    try (DeviceQueues queues = exclusive(2, 4)) {
      for (DeviceQueue queue : queues.queues()) {
        MemorySegment stop = array(queue, Queue.STOP, 4);
        queues.stop(true);
        assertThat(DeviceLayout.getInt(stop, 0)).isEqualTo(1);
        queues.stop(false);
        assertThat(DeviceLayout.getInt(stop, 0)).isZero();
      }
    }
  }

  @Test
  void aResetIsNoticedAndMended() {
    try (DeviceQueues queues = exclusive(2, 4)) {
      assertThat(queues.troubled()).isFalse();
      controller.reset();
      assertThat(queues.broken()).isTrue();
      assertThat(queues.recover()).hasSize(2).allMatch(RecoveryOutcome::recovered);
      assertThat(queues.troubled()).isFalse();
    }
  }

  /** The second queue cannot be deleted; the reset that helps it takes the first away again. */
  @Test
  void aQueueThatIsMendedAndThenLostToTheNextOnesResetIsMendedAgain() {
    try (DeviceQueues queues = exclusive(3, 4)) {
      for (DeviceQueue queue : queues.queues().subList(0, 2)) {
        DeviceLayout.setInt(struct(queue), Queue.QUARANTINED, 1);
      }
      device.faults().add("status=generic/internal-error on delete-sq nth=2");

      List<RecoveryOutcome> outcomes = queues.recover();

      assertThat(outcomes)
          .extracting(RecoveryOutcome::rung)
          .as("first, second, third (lost, too), first again")
          .containsExactly(Rung.QUEUE, Rung.RESET, Rung.RESET, Rung.RESET);
      assertThat(queues.queues())
          .allMatch(q -> q.pair().state() == State.READY)
          .allMatch(q -> q.quarantined() == 0);
      assertThat(queues.troubled()).isFalse();
      assertThat(queues.recover()).as("nothing left to do").isEmpty();
    }
  }

  /** A queue that stays lost ends the attempt; nobody loops on a controller that is gone. */
  @Test
  void recoveryEndsAtTheFirstQueueThatCannotBeMended() {
    try (DeviceQueues queues = exclusive(2, 4)) {
      DeviceLayout.setInt(struct(queues.queues().getLast()), Queue.QUARANTINED, 1);
      device.faults().add("gone on delete-sq");

      assertThat(queues.recover())
          .singleElement()
          .satisfies(o -> assertThat(o.rung()).isEqualTo(Rung.FAILED))
          .satisfies(o -> assertThat(o.failure()).isInstanceOf(DeviceGoneException.class));
      assertThat(queues.broken()).isTrue();
      assertThat(queues.recover()).singleElement().matches(o -> !o.recovered());
    }
  }

  @Test
  void closingGivesTheQueuesBackInAnyOrder() {
    DeviceQueues queues = exclusive(2, 4);
    queues.close();
    queues.close();
    assertThat(queues.queues()).allMatch(q -> q.pair().state() == State.CLOSED);

    DeviceQueues late = exclusive(2, 4);
    accelerator.close();
    late.close();

    Accelerator other = new FakeGpu();
    DeviceQueues last =
        new DeviceQueues(controller, other, DeviceQueueOptions.exclusive(Placement.VRAM, 1, 4));
    controller.close();
    last.close();
    other.close();
  }

  @Test
  void defaultsFitTheController() {
    try (DeviceQueues queues = exclusive(0, 0)) {
      assertThat(queues.depth()).isEqualTo(64);
      assertThat(queues.queues()).hasSize(4);
    }
    assertThatThrownBy(() -> exclusive(1, 65))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("depth 65 is outside 1..64");
    try (CpuAccelerator cpu = CpuAccelerator.open()) {
      assertThatThrownBy(
              () ->
                  new DeviceQueues(
                      controller, cpu, DeviceQueueOptions.exclusive(Placement.VRAM, 1, 4)))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("needs a GPU");
    }
  }
}
