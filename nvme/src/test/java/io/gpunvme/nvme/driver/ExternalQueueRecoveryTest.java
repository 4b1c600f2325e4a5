package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.driver.QueuePair.State;
import io.gpunvme.nvme.driver.RecoveryOutcome.Rung;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Pairs driven by somebody else, brought back after every kind of trouble. */
class ExternalQueueRecoveryTest {
  private static final int DEPTH = 8;

  private final SimRig rig = new SimRig();
  private final NvmeController controller = rig.controller;
  private final HostRings rings = new HostRings(rig.device, 2 * DEPTH, 2 * DEPTH);
  private final ExternalQueuePair pair = controller.createExternalQueuePair(rings);
  private final ForeignDriver driver = new ForeignDriver(controller, pair, rings);

  @AfterEach
  void close() {
    rings.close();
    rig.close();
  }

  private void read(int count) {
    driver.read(count, 1, SimRig.BLOCK, rig.buffer.busAddress(0));
  }

  private void worksAgain() {
    rig.heal();
    assertThat(pair.state()).isEqualTo(State.READY);
    driver.restart();
    driver.run(5 * DEPTH, DEPTH, 1, rig.buffer.busAddress(0));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "drop on read lba=3                                | QUEUE",
        "drop skip on read lba=3                           | QUEUE",
        "stall on read lba=3                               | QUEUE",
        "delay=10s on read lba=3                           | QUEUE",
        "late=20s on read lba=3                            | QUEUE",
        "drop on read lba=3; status=0/06 on delete-sq nth=1| RESET",
        "drop on read lba=3; status=0/06 on delete-cq nth=1| RESET",
        "drop on read lba=3; status=0/06 on create-cq nth=1| RESET",
        "drop on read lba=3; status=0/06 on create-sq nth=1| RESET",
        "drop on read lba=3; drop skip on delete-sq nth=1  | RESET"
      })
  void theGentlestRungThatHelps(String fault, Rung rung) {
    rig.faults(fault);
    read(DEPTH);
    driver.await(3);
    RecoveryOutcome outcome = controller.recover(pair);
    assertThat(outcome.rung()).as(outcome.toString()).isEqualTo(rung);
    assertThat(outcome.failure()).isNull();
    assertThat(outcome.ended()).as("the owner knows its commands").isZero();
    assertThat(controller.resets()).isEqualTo(rung == Rung.RESET ? 1 : 0);
    worksAgain();
  }

  @Test
  void nothingReachesTheDataOfOutstandingCommandsAfterwards() {
    long due = System.nanoTime() + 50_000_000;
    rig.faults("delay=40ms on read lba=100");
    long offset = (long) DEPTH * SimRig.BLOCK;
    driver.submit(IoOpcode.READ, 1, 100, rig.buffer.busAddress(offset));
    driver.ring();
    assertThat(controller.recover(pair).rung()).isEqualTo(Rung.QUEUE);
    MemorySegment data = rig.buffer.memory().asSlice(offset, SimRig.BLOCK);
    data.fill((byte) 0x77);
    worksAgain();
    SimRig.await("the time when it would have ended", () -> System.nanoTime() > due);
    driver.run(1, 1, 1, rig.buffer.busAddress(0));
    byte[] untouched = new byte[SimRig.BLOCK];
    Arrays.fill(untouched, (byte) 0x77);
    assertThat(data.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(untouched);
    assertThat(driver.poll()).as("no completion of the old queue").isEmpty();
  }

  @Test
  void aFatalErrorIsCuredByAReset() {
    rig.faults("cfs on read lba=2");
    read(DEPTH);
    SimRig.await("CSTS.CFS", controller::troubled);
    RecoveryOutcome outcome = controller.recover(pair);
    assertThat(outcome.rung()).as(outcome.toString()).isEqualTo(Rung.RESET);
    assertThat(outcome.detail()).contains("CSTS.CFS");
    assertThat(controller.troubled()).isFalse();
    worksAgain();
  }

  @Test
  void goneIsFinalUntilAResetFindsTheDeviceAgain() {
    rig.faults("gone on read lba=2");
    read(DEPTH);
    SimRig.await("the device to go", controller::troubled);
    RecoveryOutcome outcome = controller.recover(pair);
    assertThat(outcome.rung()).isEqualTo(Rung.FAILED);
    assertThat(outcome.failure()).isInstanceOf(DeviceGoneException.class);
    assertThat(pair.state()).isEqualTo(State.BROKEN);
    assertThat(controller.recover(pair).failure()).isInstanceOf(DeviceGoneException.class);
    assertThatThrownBy(() -> controller.createExternalQueuePair(rings))
        .isInstanceOf(DeviceGoneException.class);
    rig.heal();
    controller.reset();
    assertThat(controller.recover(pair).rung()).isEqualTo(Rung.RESET);
    worksAgain();
  }

  @Test
  void aControllerThatCannotBeResetFailsUntilItCan() {
    rig.faults("cfs on read nth=1; ready-stuck on enable count=1");
    read(1);
    SimRig.await("CSTS.CFS", controller::troubled);
    RecoveryOutcome outcome = controller.recover(pair);
    assertThat(outcome.rung()).isEqualTo(Rung.FAILED);
    assertThat(outcome.failure()).isInstanceOf(NvmeTimeoutException.class);
    assertThat(pair.state()).isEqualTo(State.BROKEN);
    controller.reset();
    assertThat(controller.recover(pair).recovered()).isTrue();
    worksAgain();
  }

  @Test
  void resetForOnePairBreaksTheOthersOfBothKinds() {
    QueuePair own = controller.createQueuePair(4);
    try (HostRings more = new HostRings(rig.device, 4, 4)) {
      ExternalQueuePair other = controller.createExternalQueuePair(more);
      rig.faults("cfs on read lba=2");
      read(DEPTH);
      SimRig.await("CSTS.CFS", controller::troubled);
      assertThat(controller.recover(pair).rung()).isEqualTo(Rung.RESET);
      assertThat(List.of(own.state(), other.state())).containsOnly(State.BROKEN);
      worksAgain();
      assertThat(controller.recover(other).rung()).isEqualTo(Rung.RESET);
      new ForeignDriver(controller, other, more).run(20, 3, 1, rig.buffer.busAddress(0));
      controller.deleteExternalQueuePair(other);
      assertThat(controller.resets()).isEqualTo(1);
    }
  }

  @Test
  void recoveryOfAPollingPairLeavesTheExternalOneAlone() {
    QueuePair own = controller.createQueuePair(4);
    rig.faults("drop on read qid=2");
    rig.submitReads(own, 4);
    own.breakQueue();
    assertThat(controller.recover(own, (q, slot, status) -> {}).rung()).isEqualTo(Rung.QUEUE);
    driver.run(20, DEPTH, 1, rig.buffer.busAddress(0));
    assertThat(rings.clears).isEqualTo(1);
  }

  @Test
  void aSingleCommandMayBeAborted() {
    rig.faults("drop skip on read lba=1");
    read(3);
    driver.await(2);
    assertThat(controller.abort(pair, 1)).isTrue();
    ForeignDriver.Done done = driver.await(1).getFirst();
    assertThat(done.cid()).isEqualTo(1);
    assertThat(StatusCode.of(done.status())).isEqualTo(StatusCode.ABORT_REQUESTED);
    assertThat(controller.abort(pair, 1)).as("it is over").isFalse();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"drop on read", "stall on read", "gone on read nth=1", "cfs on read nth=1"})
  void deletedWithCommandsOutstanding(String fault) {
    readAndWaitForTrouble(fault);
    controller.deleteExternalQueuePair(pair);
    assertThat(pair.state()).isEqualTo(State.CLOSED);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"drop on read", "stall on read", "gone on read nth=1", "cfs on read nth=1"})
  void closedWithCommandsOutstanding(String fault) {
    readAndWaitForTrouble(fault);
    controller.close();
    assertThat(pair.state()).isEqualTo(State.CLOSED);
    assertThat(controller.troubled()).as("closed").isTrue();
  }

  private void readAndWaitForTrouble(String fault) {
    rig.faults(fault);
    read(DEPTH);
    if (fault.startsWith("gone") || fault.startsWith("cfs")) {
      SimRig.await("trouble", controller::troubled);
    }
  }
}
