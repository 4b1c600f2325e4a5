package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Each fault the embedded controller knows: a typed error or recovery, and the next command works.
 */
class FaultsTest {
  private final SimRig rig = new SimRig();
  private final NvmeController controller = rig.controller;
  private final BlockDevice device = rig.blocks(16);

  @AfterEach
  void nextCommandsWork() {
    rig.heal();
    try {
      if (!controller.troubled()) {
        assertThat(rig.roundTrip(device, 700, 300, 77)).as("the next commands").isTrue();
        assertThat(device.queue().inFlight()).isZero();
      }
    } finally {
      rig.close();
    }
  }

  private void prepare(int mark) {
    assertThat(rig.roundTrip(device, 0, 1024, mark)).isTrue();
  }

  private NvmeStatusException fails(Runnable action) {
    return catchThrowableOfType(NvmeStatusException.class, action::run);
  }

  /** Its own command is recovered as any other; commands of others are not ended by a reset. */
  @Test
  void anInterruptedCallerResetsNothing() {
    prepare(40);
    rig.faults("drop on read nth=1");
    Thread.currentThread().interrupt();
    boolean same = rig.readsBack(device, 0, 8, 40);
    assertThat(Thread.interrupted()).as("the interrupt is kept").isTrue();
    assertThat(same).isTrue();
    assertThat(device.lastRecovery()).isNotNull();
    assertThat(controller.resets()).isZero();
  }

  // ---- status on an LBA range

  @Test
  void errorOnARangeOfBlocksNamesTheCommand() {
    prepare(1);
    rig.faults("status=media/unrecovered-read dnr on read lba=100..200");
    NvmeStatusException e = fails(() -> device.read(150, 1, rig.buffer.range(), 0));
    assertThat(StatusCode.of(e.status())).isEqualTo(StatusCode.UNRECOVERED_READ_ERROR);
    assertThat(e.slba()).isEqualTo(150);
    assertThat(e.opcode()).isEqualTo(IoOpcode.READ);
    assertThat(e.qid()).isEqualTo(device.queue().qid());
    assertThat(e.nsid()).isEqualTo(1);
    assertThat(e.retryable()).isFalse();
    assertThat(device.retried()).isZero();
    assertThat(rig.readsBack(device, 0, 100, 1)).isTrue();
    assertThat(rig.readsBack(device, 201, 99, 1)).isTrue();
  }

  @Test
  void retryableErrorsAreRetriedUntilTheyCease() {
    prepare(2);
    rig.faults("status=generic/namespace-not-ready on read count=3");
    assertThat(rig.readsBack(device, 0, 8, 2)).isTrue();
    assertThat(device.retried()).isEqualTo(3);
  }

  @Test
  void retryableErrorsThatDoNotCeaseAreReported() {
    rig.faults("status=generic/namespace-not-ready on read");
    NvmeStatusException e = fails(() -> device.read(0, 8, rig.buffer.range(), 0));
    assertThat(StatusCode.of(e.status())).isEqualTo(StatusCode.NAMESPACE_NOT_READY);
    assertThat(e.retryable()).isTrue();
    assertThat(device.retried()).isEqualTo(controller.options().retries());
  }

  @Test
  void oneFailureInALongRequestLeavesNothingInFlight() {
    prepare(3);
    rig.faults("status=media/write-fault dnr on write lba=1500");
    assertThatThrownBy(() -> device.write(0, 2048, rig.buffer.range(), 0))
        .isInstanceOf(NvmeStatusException.class)
        .hasMessageContainingAll("Write failed", "Write Fault", "namespace 1");
    assertThat(device.queue().inFlight()).isZero();
  }

  @ParameterizedTest
  @ValueSource(strings = {"write", "flush", "compare", "write-zeroes", "dsm", "verify"})
  void everyCommandReportsItsError(String command) {
    rig.faults("status=generic/internal dnr on " + command);
    DmaBuffer b = rig.buffer;
    Runnable action =
        switch (command) {
          case "write" -> () -> device.write(0, 1, b.range(), 0);
          case "flush" -> device::flush;
          case "compare" -> () -> device.compare(0, 1, b.range(), 0);
          case "write-zeroes" -> () -> device.writeZeroes(0, 1, true);
          case "dsm" -> () -> device.trim(0, 1);
          default -> () -> device.verify(0, 1);
        };
    NvmeStatusException e = fails(action);
    assertThat(StatusCode.of(e.status())).isEqualTo(StatusCode.INTERNAL_ERROR);
    rig.heal();
    if (!command.equals("compare")) {
      action.run();
    }
  }

  // ---- completions

  @Test
  void droppedCompletionIsRepeated() {
    prepare(4);
    rig.faults("drop on read nth=1; drop on write nth=1; drop on flush nth=1; drop on dsm nth=1");
    assertThat(rig.readsBack(device, 0, 64, 4)).isTrue();
    assertThat(rig.roundTrip(device, 64, 64, 5)).isTrue();
    device.flush();
    device.trim(900, 10);
    assertThat(device.retried()).isEqualTo(4);
  }

  @Test
  void lateCompletionInTimeIsNoTrouble() {
    prepare(6);
    rig.faults("late=20ms on read nth=1");
    assertThat(rig.readsBack(device, 0, 64, 6)).isTrue();
    assertThat(device.lastRecovery()).isNull();
  }

  @Test
  void lateCompletionOfAnAbandonedCommandIsNeverMistakenForANewOne() {
    prepare(7);
    rig.faults("delay=400ms on read nth=1");
    assertThat(rig.readsBack(device, 0, 8, 7)).isTrue();
    assertThat(device.lastRecovery()).isNotNull();
    long until = System.nanoTime() + 250_000_000;
    while (System.nanoTime() < until) {
      assertThat(rig.readsBack(device, 0, 8, 7)).isTrue();
    }
  }

  @Test
  void duplicatedCompletionsAreCountedAndIgnored() {
    prepare(8);
    long stale = device.queue().stale();
    rig.faults("duplicate on read count=50");
    for (int i = 0; i < 60; i++) {
      assertThat(rig.readsBack(device, i, 3, 8)).isTrue();
    }
    assertThat(device.queue().stale() - stale).isEqualTo(50);
    assertThat(device.lastRecovery()).isNull();
  }

  @Test
  void tornCompletionsAreWaitedFor() {
    prepare(9);
    long malformed = device.queue().malformed();
    rig.faults("torn=2ms on read every=2 count=10");
    for (int i = 0; i < 30; i++) {
      assertThat(rig.readsBack(device, i, 3, 9)).isTrue();
    }
    assertThat(device.queue().malformed()).isGreaterThan(malformed);
    assertThat(device.lastRecovery()).isNull();
  }

  @Test
  void reorderedCompletionsFindTheirCommands() {
    prepare(10);
    rig.faults("reorder=5 on read p=0.3");
    assertThat(rig.readsBack(device, 0, 1024, 10)).isTrue();
    assertThat(rig.roundTrip(device, 0, 2048, 11)).isTrue();
    assertThat(device.lastRecovery()).isNull();
  }

  @Test
  void completionsWithTheWrongIdentifierAreIgnored() {
    prepare(12);
    rig.faults("wrong-cid=64 on read nth=1");
    assertThat(rig.readsBack(device, 0, 8, 12)).isTrue();
    assertThat(device.queue().stale() + device.queue().unknown()).isPositive();
    assertThat(device.lastRecovery()).isNotNull();
  }

  @Test
  void completionsWithTheWrongPhaseAreNotSeen() {
    prepare(13);
    rig.faults("wrong-phase on read nth=1");
    assertThat(rig.readsBack(device, 0, 8, 13)).isTrue();
    assertThat(device.lastRecovery()).isNotNull();
  }

  @Test
  void submissionHeadsAreNotBelieved() {
    prepare(14);
    rig.faults("sqhd-bad=65535 on io");
    assertThat(rig.readsBack(device, 0, 1024, 14)).isTrue();
    assertThat(device.lastRecovery()).isNull();
  }

  @Test
  void interruptsAreNotNeeded() {
    prepare(15);
    rig.faults("lost-interrupt on io");
    assertThat(rig.readsBack(device, 0, 1024, 15)).isTrue();
  }

  // ---- queue and controller

  @Test
  void stalledQueueIsReplaced() {
    prepare(16);
    rig.faults("stall on read nth=1");
    assertThat(rig.readsBack(device, 0, 1024, 16)).isTrue();
    assertThat(rig.readsBack(device, 0, 1024, 16)).isTrue();
    assertThat(device.lastRecovery().rung()).isEqualTo(RecoveryOutcome.Rung.QUEUE);
  }

  @Test
  void queueStalledForAShortTimeGoesOn() {
    prepare(17);
    rig.faults("stall=20ms on read nth=1");
    assertThat(rig.readsBack(device, 0, 1024, 17)).isTrue();
    assertThat(rig.readsBack(device, 0, 1024, 17)).isTrue();
    assertThat(device.lastRecovery()).isNull();
  }

  @Test
  void fatalStatusDuringIoIsRecoveredByAReset() {
    prepare(18);
    rig.faults("cfs on read nth=1");
    long start = System.nanoTime();
    assertThat(rig.readsBack(device, 0, 1024, 18)).isTrue();
    assertThat(System.nanoTime() - start)
        .as("noticed before the timeout")
        .isLessThan(2_000_000_000L);
    assertThat(controller.resets()).isEqualTo(1);
    assertThat(device.lastRecovery().detail()).contains("CSTS.CFS");
  }

  @Test
  void fatalStatusAtEveryAttemptIsTyped() {
    rig.faults("cfs on read");
    assertThatThrownBy(() -> device.read(7, 1, rig.buffer.range(), 0))
        .isInstanceOf(ControllerFatalException.class)
        .hasMessageContaining("at LBA 7")
        .hasMessageContaining("CSTS.CFS");
    assertThat(controller.resets()).isEqualTo(1L + controller.options().retries());
    device.flush();
  }

  @Test
  void fatalStatusDuringAnAdminCommandIsTyped() {
    rig.faults("cfs on identify nth=1");
    assertThatThrownBy(() -> controller.identify(Cns.CONTROLLER, 0))
        .isInstanceOf(ControllerFatalException.class)
        .hasMessageContaining("was reset");
    assertThat(
            new IdentifyController(controller.identify(Cns.CONTROLLER, 0))
                .getText(IdentifyController.SN))
        .isEqualTo(controller.identify().getText(IdentifyController.SN));
  }

  @Test
  void vanishedDeviceIsTypedEverywhere() {
    rig.faults("gone on read nth=1");
    assertThatThrownBy(() -> device.read(0, 1024, rig.buffer.range(), 0))
        .isInstanceOf(DeviceGoneException.class)
        .hasMessageContaining("all ones");
    assertThatThrownBy(device::flush).isInstanceOf(DeviceGoneException.class);
    assertThatThrownBy(() -> controller.identify(Cns.CONTROLLER, 0))
        .isInstanceOf(DeviceGoneException.class);
  }

  @Test
  void corruptedReadsAreFoundByComparing() {
    prepare(19);
    rig.faults("corrupt=3 on read lba=512 count=1");
    assertThat(rig.readsBack(device, 0, 1024, 19)).isFalse();
    assertThat(rig.readsBack(device, 0, 1024, 19)).isTrue();
  }

  @Test
  void corruptedWritesAreFoundByTheControllersCompare() {
    Blocks.fill(rig.buffer.memory(), 0, 0, 64, SimRig.BLOCK, 20);
    rig.faults("corrupt on write count=1");
    device.write(0, 64, rig.buffer.range(), 0);
    NvmeStatusException e = fails(() -> device.compare(0, 64, rig.buffer.range(), 0));
    assertThat(StatusCode.of(e.status())).isEqualTo(StatusCode.COMPARE_FAILURE);
    assertThat(rig.readsBack(device, 0, 64, 20)).isFalse();
    assertThat(rig.roundTrip(device, 0, 64, 20)).isTrue();
  }

  // ---- bring-up

  private static SimulatedController faulty(String faults) {
    SimulatedController device =
        SimulatedController.create(SimConfig.builder().to(1).latencyNanos(0).build());
    device.faults().add(faults);
    return device;
  }

  private static ControllerOptions quick() {
    return ControllerOptions.builder().adminTimeout(Duration.ofMillis(300)).build();
  }

  @Test
  void bringUpThatSticks() {
    assertThatThrownBy(() -> NvmeController.open(faulty("ready-stuck on enable"), quick()))
        .isInstanceOf(NvmeTimeoutException.class)
        .hasMessageContaining("WAIT_READY");
    assertThatThrownBy(() -> NvmeController.open(faulty("cfs on enable"), quick()))
        .isInstanceOf(ControllerFatalException.class)
        .hasMessageContaining("WAIT_READY");
    assertThatThrownBy(() -> NvmeController.open(faulty("gone on enable"), quick()))
        .isInstanceOf(DeviceGoneException.class);
    assertThatThrownBy(() -> NvmeController.open(faulty("gone on register"), quick()))
        .isInstanceOf(DeviceGoneException.class);
  }

  @Test
  void bringUpWhoseIdentifyNeverCompletes() {
    assertThatThrownBy(() -> NvmeController.open(faulty("drop on identify"), quick()))
        .isInstanceOf(NvmeTimeoutException.class)
        .hasMessageContaining("Identify did not complete within 300 ms");
    assertThatThrownBy(
            () -> NvmeController.open(faulty("status=generic/internal dnr on identify"), quick()))
        .isInstanceOf(NvmeStatusException.class);
  }

  @Test
  void resetThatSticksOnDisabling() {
    rig.faults("ready-stuck on disable count=1");
    assertThatThrownBy(controller::reset)
        .isInstanceOf(NvmeTimeoutException.class)
        .hasMessageContaining("WAIT_DISABLED");
    assertThatThrownBy(() -> device.read(0, 1, rig.buffer.range(), 0))
        .isInstanceOf(NvmeTimeoutException.class);
    rig.heal();
    controller.reset();
  }

  @Test
  void shutdownThatGoesWrongIsTypedAndClosingIsNot() {
    SimulatedController sim = faulty("cfs on shutdown");
    NvmeController broken = NvmeController.open(sim, quick());
    assertThatThrownBy(broken::shutdown).isInstanceOf(ControllerFatalException.class);
    broken.close();
    assertThat(sim.internalError()).isNull();
  }

  // ---- several at once

  @Test
  void everythingAtOnceStillReadsBackEqual() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    try (SimRig wild =
        new SimRig(
            c -> c.outOfOrder(true).workers(2).latencyNanos(20_000).seed(seed),
            o -> o.retries(20))) {
      List<BlockDevice> devices = new ArrayList<>(List.of(wild.blocks(16), wild.blocks(7)));
      wild.faults(
          "status=generic/internal on io p=0.01; drop on io p=0.0005; duplicate on io p=0.01;"
              + "reorder=3 on io p=0.02; torn=100us on io p=0.01; late=1ms on io p=0.005;"
              + "stall=1ms on io p=0.001; wrong-cid=4096 on io p=0.0002; cfs on io p=0.0001");
      for (int i = 0; i < 60; i++) {
        BlockDevice d = devices.get(i % devices.size());
        assertThat(wild.roundTrip(d, i * 13L, 1500, i)).as("seed %d, round %d", seed, i).isTrue();
      }
    }
  }

  @Test
  void namespacesThatDoNotFitAreRefusedWithAReason() {
    try (SimRig narrow = new SimRig(c -> c.maxTransfer(8192).namespace(largeBlocks()), o -> {})) {
      Namespace ns = narrow.controller.namespace(1);
      assertThat(ns.usable()).isTrue();
      assertThatThrownBy(() -> BlockDevice.open(narrow.controller, ns, 4))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("longer than the longest transfer");
      assertThat(narrow.controller.createQueuePair(2).qid()).isEqualTo(1);
    }
  }

  private static io.gpunvme.sim.NamespaceConfig largeBlocks() {
    return io.gpunvme.sim.NamespaceConfig.ram(16 << 20, 65536);
  }
}
