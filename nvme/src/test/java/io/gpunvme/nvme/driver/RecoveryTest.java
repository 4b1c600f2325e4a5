package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.driver.RecoveryOutcome.Rung;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.spec.StatusCode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Every rung of the ladder, proven by a fault that only it can cure; the next command works. */
class RecoveryTest {
  private final SimRig rig = new SimRig();
  private final NvmeController controller = rig.controller;

  @AfterEach
  void close() {
    rig.close();
  }

  // ---- through BlockDevice, which repeats what was lost

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "drop skip on read nth=1                           | ABORT",
        "delay=10s on read nth=1                           | ABORT",
        "drop skip on read count=2                         | ABORT",
        "drop on read nth=1                                | QUEUE",
        "stall on read nth=1                               | QUEUE",
        "wrong-cid on read nth=1                           | QUEUE",
        "wrong-phase on read nth=1                         | QUEUE",
        "late=20s on read nth=1                          | QUEUE",
        "drop on read nth=1; status=0/06 on delete-sq nth=1| RESET",
        "drop on read nth=1; status=0/06 on delete-cq nth=1| RESET",
        "drop on read nth=1; status=0/06 on create-sq nth=1| RESET",
        "drop on read nth=1; drop on abort nth=1           | RESET",
        "drop on read nth=1; drop skip on delete-sq nth=1  | RESET",
        "cfs on read nth=1                                 | RESET",
        "drop on read nth=1; cfs on abort nth=1            | RESET"
      })
  void theGentlestRungThatHelps(String fault, Rung rung) {
    try (BlockDevice device = rig.blocks(8)) {
      assertThat(rig.roundTrip(device, 0, 8, 1)).isTrue();
      assertThat(device.lastRecovery()).isNull();
      rig.faults(fault);
      device.read(0, 1, rig.buffer.range(), 0);
      assertThat(rig.readsBack(device, 0, 8, 1)).as("repeated until it arrived").isTrue();
      RecoveryOutcome outcome = device.lastRecovery();
      assertThat(outcome).isNotNull();
      assertThat(outcome.rung()).as(outcome.toString()).isEqualTo(rung);
      assertThat(outcome.recovered()).isTrue();
      assertThat(outcome.failure()).isNull();
      assertThat(controller.resets()).isEqualTo(rung == Rung.RESET ? 1 : 0);
      rig.heal();
      assertThat(rig.roundTrip(device, 100, 600, 2)).as("next commands").isTrue();
      assertThat(device.queue().quarantined()).isZero();
    }
  }

  @Test
  void everyCommandIsRepeatedOnItsOwn() {
    try (BlockDevice device = rig.blocks(32)) {
      assertThat(rig.roundTrip(device, 0, 2048, 3)).isTrue();
      rig.faults("drop skip on read every=2 count=3; stall=1ms on read nth=5");
      assertThat(rig.readsBack(device, 0, 2048, 3)).isTrue();
      assertThat(device.retried()).isBetween(1L, 64L);
    }
  }

  @Test
  void aCommandThatNeverCompletesFailsInTheEnd() {
    try (BlockDevice device = rig.blocks(8)) {
      rig.faults("drop on read lba=5");
      long start = System.nanoTime();
      assertThatThrownBy(() -> device.read(0, 8, rig.buffer.range(), 0))
          .isInstanceOf(NvmeTimeoutException.class)
          .hasMessageContainingAll("Read at LBA 0", "did not complete within 250 ms, 4 times");
      long bound = 4 * (SimRig.TIMEOUT_NANOS + 2_000_000_000L);
      assertThat(System.nanoTime() - start).isLessThan(bound);
      assertThat(device.lastRecovery().rung()).isEqualTo(Rung.QUEUE);
      device.read(6, 8, rig.buffer.range(), 0);
      assertThat(device.queue().inFlight()).isZero();
    }
  }

  @Test
  void goneIsFinalForEverybody() {
    BlockDevice device = rig.blocks(8);
    BlockDevice other = rig.blocks(8);
    rig.faults("gone on read nth=1");
    long start = System.nanoTime();
    assertThatThrownBy(() -> device.read(0, 800, rig.buffer.range(), 0))
        .isInstanceOf(DeviceGoneException.class);
    assertThat(device.lastRecovery().rung()).isEqualTo(Rung.FAILED);
    assertThatThrownBy(() -> other.read(0, 8, rig.buffer.range(), 0))
        .isInstanceOf(DeviceGoneException.class);
    assertThatThrownBy(() -> controller.logs().smart()).isInstanceOf(DeviceGoneException.class);
    assertThatThrownBy(() -> controller.createQueuePair(4)).isInstanceOf(DeviceGoneException.class);
    assertThat(System.nanoTime() - start).isLessThan(2_000_000_000L);
    rig.heal();
    controller.reset();
    device.read(0, 800, rig.buffer.range(), 0);
  }

  @Test
  void aControllerThatCannotBeResetFailsUntilItCan() {
    try (BlockDevice device = rig.blocks(8)) {
      assertThat(rig.roundTrip(device, 0, 8, 4)).isTrue();
      rig.faults("cfs on read nth=1; ready-stuck on enable count=1");
      assertThatThrownBy(() -> device.read(0, 8, rig.buffer.range(), 0))
          .isInstanceOf(NvmeTimeoutException.class)
          .hasMessageContaining("WAIT_READY");
      assertThat(device.lastRecovery().rung()).isEqualTo(Rung.FAILED);
      assertThatThrownBy(() -> device.read(0, 8, rig.buffer.range(), 0))
          .isInstanceOf(NvmeTimeoutException.class)
          .hasMessageContaining("out of service");
      controller.reset();
      assertThat(rig.readsBack(device, 0, 8, 4)).isTrue();
    }
  }

  @Test
  void oneResetServesAllQueues() throws Exception {
    int threads = 4;
    try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
      List<BlockDevice> devices = new ArrayList<>();
      for (int t = 0; t < threads; t++) {
        devices.add(rig.blocks(4));
        rig.roundTrip(devices.get(t), t * 100L, 8, t);
      }
      rig.faults("cfs on read nth=200");
      List<Future<?>> done = new ArrayList<>();
      for (BlockDevice device : devices) {
        done.add(
            pool.submit(
                () -> {
                  for (int i = 0; i < 200; i++) {
                    device.read(0, 8, rig.buffer.range(), 0);
                  }
                }));
      }
      for (Future<?> f : done) {
        f.get(30, TimeUnit.SECONDS);
      }
      assertThat(controller.resets()).isEqualTo(1);
      assertThat(devices.stream().filter(d -> d.lastRecovery() != null)).hasSize(threads);
    }
  }

  @Test
  void queuesDeleteCleanlyAfterAReset() {
    BlockDevice idle = rig.blocks(4);
    controller.reset();
    idle.close();
    rig.faults("drop skip on delete-sq nth=1");
    BlockDevice other = rig.blocks(4);
    other.close();
    assertThat(controller.resets()).isEqualTo(2);
    rig.heal();
    assertThat(rig.roundTrip(rig.blocks(4), 0, 8, 5)).isTrue();
    assertThat(rig.blocks(4).queue().qid()).isLessThanOrEqualTo(2);
  }

  // ---- with a bare queue pair, whose owner sees every ending

  /** Remembers how each command ended. */
  private static final class Endings implements CompletionSink {
    final Map<Long, Integer> status = new TreeMap<>();

    @Override
    public void completed(QueuePair queue, int slot, int ended) {
      assertThat(status.put(queue.userData(slot), ended)).as("ended twice").isNull();
    }

    long with(StatusCode code) {
      return status.values().stream().filter(s -> StatusCode.of(s) == code).count();
    }
  }

  private static void sleepPastTheTimeout() {
    long until = System.nanoTime() + SimRig.TIMEOUT_NANOS + 1_000_000;
    SimRig.await("the timeout", () -> System.nanoTime() > until);
  }

  @Test
  void lookingOnceMoreIsEnoughForAnOwnerWhoWasSlow() {
    QueuePair queue = controller.createQueuePair(8);
    Endings endings = new Endings();
    rig.submitReads(queue, 8);
    sleepPastTheTimeout();
    assertThat(queue.expired(System.nanoTime())).isNotNegative();
    RecoveryOutcome outcome = controller.recover(queue, endings);
    assertThat(outcome.rung()).isEqualTo(Rung.POLL);
    assertThat(outcome.ended()).isZero();
    assertThat(endings.with(StatusCode.SUCCESS)).isEqualTo(8);
  }

  @Test
  void abortedCommandsEndWithTheControllersStatus() {
    QueuePair queue = controller.createQueuePair(8);
    Endings endings = new Endings();
    rig.faults("drop skip on read lba=2..3");
    rig.submitReads(queue, 8);
    sleepPastTheTimeout();
    RecoveryOutcome outcome = controller.recover(queue, endings);
    assertThat(outcome.rung()).isEqualTo(Rung.ABORT);
    assertThat(endings.with(StatusCode.SUCCESS)).isEqualTo(6);
    assertThat(endings.with(StatusCode.ABORT_REQUESTED)).isEqualTo(2);
    assertThat(queue.inFlight()).isZero();
  }

  @ParameterizedTest
  @ValueSource(strings = {"drop on read lba=2..3", "drop on read lba=2..3; drop on abort count=1"})
  void lostCommandsEndExactlyOnce(String fault) {
    QueuePair queue = controller.createQueuePair(8);
    Endings endings = new Endings();
    rig.faults(fault);
    rig.submitReads(queue, 8);
    sleepPastTheTimeout();
    RecoveryOutcome outcome = controller.recover(queue, endings);
    assertThat(outcome.recovered()).isTrue();
    assertThat(endings.status).hasSize(8);
    assertThat(endings.with(StatusCode.SUCCESS)).isEqualTo(6);
    assertThat(endings.with(StatusCode.ABORTED_BY_HOST)).isEqualTo(2);
    assertThat(outcome.ended()).isEqualTo(2);
    rig.heal();
    endings.status.clear();
    rig.submitReads(queue, 8);
    SimRig.await("the next commands", () -> queue.poll(endings) >= 0 && queue.inFlight() == 0);
    assertThat(endings.with(StatusCode.SUCCESS)).isEqualTo(8);
  }

  @Test
  void deletedQueuesHandOverWhatTheControllerStillSays() {
    QueuePair queue = controller.createQueuePair(8);
    Endings endings = new Endings();
    rig.faults("drop on read lba=2; late=20s on read lba=5");
    rig.submitReads(queue, 8);
    sleepPastTheTimeout();
    assertThat(controller.recover(queue, endings).rung()).isEqualTo(Rung.QUEUE);
    assertThat(endings.status).hasSize(8);
    assertThat(endings.status.get(5L)).as("executed, completion late").isZero();
    assertThat(StatusCode.of(endings.status.get(2L))).isEqualTo(StatusCode.ABORTED_BY_HOST);
  }

  @Test
  void resetEndsWhatWasInFlightElsewhere() {
    QueuePair queue = controller.createQueuePair(8);
    Endings endings = new Endings();
    rig.faults("drop skip on read");
    rig.submitReads(queue, 8);
    controller.reset();
    assertThat(queue.state()).isEqualTo(QueuePair.State.BROKEN);
    assertThat(queue.poll(endings)).isZero();
    rig.submitReads(queue, 8);
    assertThat(queue.inFlight()).as("nothing can be added").isEqualTo(8);
    RecoveryOutcome outcome = controller.recover(queue, endings);
    assertThat(outcome.rung()).isEqualTo(Rung.RESET);
    assertThat(outcome.ended()).isEqualTo(8);
    assertThat(endings.with(StatusCode.ABORTED_BY_HOST)).isEqualTo(8);
    assertThat(endings.status.values()).allMatch(s -> !Status.dnr(s));
  }

  @Test
  void quarantinedCommandsMayStillComplete() {
    QueuePair queue = controller.createQueuePair(2);
    Endings endings = new Endings();
    rig.faults("late=400ms on read lba=0");
    rig.submitReads(queue, 1);
    sleepPastTheTimeout();
    int slot = queue.expired(System.nanoTime());
    queue.quarantine(slot);
    assertThat(queue.quarantined()).isEqualTo(1);
    assertThat(queue.expired(System.nanoTime())).isNegative();
    SimRig.await("the late completion", () -> queue.poll(endings) > 0);
    assertThat(queue.quarantined()).isZero();
    assertThat(endings.with(StatusCode.SUCCESS)).isEqualTo(1);
  }

  @Test
  void ownersMayAbortByThemselves() {
    QueuePair queue = controller.createQueuePair(4);
    Endings endings = new Endings();
    rig.faults("drop skip on read lba=1");
    rig.submitReads(queue, 3);
    SimRig.await("the other two", () -> queue.poll(endings) >= 0 && queue.inFlight() == 1);
    assertThat(controller.abort(queue, queue.cid(1))).isTrue();
    SimRig.await("the third", () -> queue.poll(endings) >= 0 && queue.inFlight() == 0);
    assertThat(StatusCode.of(endings.status.get(1L))).isEqualTo(StatusCode.ABORT_REQUESTED);
  }

  @Test
  void foreignQueuesAreNotRecovered() {
    try (SimRig stranger = new SimRig()) {
      QueuePair queue = stranger.controller.createQueuePair(4);
      queue.breakQueue();
      RecoveryOutcome outcome = controller.recover(queue, new Endings());
      assertThat(outcome.rung()).isEqualTo(Rung.FAILED);
      assertThat(outcome.failure()).isInstanceOf(InvalidRequestException.class);
    }
  }

  @Test
  void abortsOfSeveralThreadsStayWithinTheLimit() throws Exception {
    try (SimRig narrow = new SimRig(c -> c.acl(0), o -> {});
        ExecutorService pool = Executors.newFixedThreadPool(6)) {
      QueuePair queue = narrow.controller.createQueuePair(4);
      List<Future<Boolean>> done = new ArrayList<>();
      for (int i = 0; i < 60; i++) {
        int cid = i;
        done.add(pool.submit(() -> narrow.controller.abort(queue, cid)));
      }
      for (Future<Boolean> f : done) {
        assertThat(f.get(10, TimeUnit.SECONDS)).isFalse();
      }
    }
  }

  @Test
  void typedFailureReachesWhoeverAsks() {
    QueuePair queue = controller.createQueuePair(4);
    rig.faults("gone on register");
    RecoveryOutcome outcome = controller.recover(queue, new Endings());
    assertThat(outcome.rung()).isEqualTo(Rung.FAILED);
    RuntimeException failure = outcome.failure();
    assertThat(failure).isInstanceOf(DeviceGoneException.class);
    assertThat(outcome.toString()).contains("FAILED").contains("all ones");
  }
}
