package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.spec.AsyncEvent;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.ErrorLogEntry;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.Features;
import io.gpunvme.nvme.spec.FirmwareSlotLog;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.SmartLog;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.nvme.spec.Vs;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/**
 * What the driver and any controller owe each other, whatever the controller is made of. A subclass
 * says how to reach one whose contents may be destroyed.
 */
abstract class ControllerContract extends BlockContract {
  // ---- bring-up and identification

  @Test
  void bringUpIsReported() {
    assertThat(FakeFunction.states(controller.bringUpSteps()))
        .startsWith("PROBE")
        .containsSequence("ENABLE", "WAIT_READY", "IDENTIFY", "NAMESPACES", "QUEUES");
    assertThat(controller.troubled()).isFalse();
  }

  @Test
  void identifiesItself() {
    IdentifyController id = controller.identify();
    assertThat(id.getText(IdentifyController.SN)).isNotBlank();
    assertThat(id.getText(IdentifyController.MN)).isNotBlank();
    assertThat(controller.version().isAtLeast(Vs.V1_2)).isTrue();
    assertThat(
            new IdentifyController(controller.identify(Cns.CONTROLLER, 0))
                .getText(IdentifyController.SN))
        .isEqualTo(id.getText(IdentifyController.SN));
    assertThat(controller.maxTransferBytes()).isGreaterThanOrEqualTo(8192);
    assertThat(controller.maxQueuePairs()).isPositive();
  }

  @Test
  void namespacesAreAsExpected() {
    List<Expected> found =
        controller.namespaces().stream()
            .filter(Namespace::usable)
            .map(n -> new Expected(n.nsid(), n.blockSize(), n.blocks()))
            .toList();
    assertThat(found).isEqualTo(expected());
    assertThat(controller.rescanNamespaces()).hasSameSizeAs(controller.namespaces());
  }

  // ---- features and logs

  @Test
  void featuresCanBeReadAndSet() {
    ControllerFeatures features = controller.features();
    int queues = features.get(FeatureId.NUMBER_OF_QUEUES);
    assertThat(Math.min(Features.NSQ.get(queues), Features.NCQ.get(queues)) + 1)
        .isGreaterThanOrEqualTo(controller.maxQueuePairs());
    features.get(FeatureId.ARBITRATION);
    features.get(FeatureId.POWER_MANAGEMENT);
    int old = features.get(FeatureId.TEMPERATURE_THRESHOLD);
    features.set(FeatureId.TEMPERATURE_THRESHOLD, old - 1);
    assertThat(features.get(FeatureId.TEMPERATURE_THRESHOLD)).isEqualTo(old - 1);
    features.set(FeatureId.TEMPERATURE_THRESHOLD, old);
    NvmeStatusException e =
        catchThrowableOfType(NvmeStatusException.class, () -> features.get(0x7F));
    assertThat(StatusCode.of(e.status())).isEqualTo(StatusCode.INVALID_FIELD);
  }

  @Test
  void volatileWriteCacheCanBeTurnedOff() {
    assumeTrue(
        (controller.identify().getInt(IdentifyController.VWC) & IdentifyController.VWC_PRESENT)
            == 1,
        "no volatile write cache");
    ControllerFeatures features = controller.features();
    int before = features.get(FeatureId.VOLATILE_WRITE_CACHE);
    features.set(FeatureId.VOLATILE_WRITE_CACHE, 0);
    assertThat(features.get(FeatureId.VOLATILE_WRITE_CACHE) & 1).isZero();
    features.set(FeatureId.VOLATILE_WRITE_CACHE, 1);
    assertThat(features.get(FeatureId.VOLATILE_WRITE_CACHE) & 1).isEqualTo(1);
    features.set(FeatureId.VOLATILE_WRITE_CACHE, before);
  }

  @Test
  void healthLogCountsCommands() {
    SmartLog before = controller.logs().smart();
    assertThat(before.getInt(SmartLog.COMPOSITE_TEMPERATURE)).isBetween(200, 400);
    try (BlockDevice device = device(8)) {
      DmaBuffer b = buffer(device.namespace().blockSize());
      for (int i = 0; i < 20; i++) {
        device.write(i, 1, b.range(), 0);
        device.read(i, 1, b.range(), 0);
        device.read(i, 1, b.range(), 0);
      }
    }
    SmartLog after = controller.logs().smart();
    assertThat(
            after.getLong(SmartLog.HOST_READ_COMMANDS)
                - before.getLong(SmartLog.HOST_READ_COMMANDS))
        .isGreaterThanOrEqualTo(40);
    assertThat(
            after.getLong(SmartLog.HOST_WRITE_COMMANDS)
                - before.getLong(SmartLog.HOST_WRITE_COMMANDS))
        .isGreaterThanOrEqualTo(20);
  }

  @Test
  void errorLogTellsOfFailures() {
    long before = controller.logs().smart().getLong(SmartLog.ERROR_LOG_ENTRIES);
    assertThatThrownBy(() -> controller.features().get(0x7F))
        .isInstanceOf(NvmeStatusException.class);
    assumeTrue(
        controller.logs().smart().getLong(SmartLog.ERROR_LOG_ENTRIES) > before,
        "the controller logs no error for this command");
    assertThat(controller.logs().errors(1).getFirst().getInt(ErrorLogEntry.SQID)).isZero();
    assertThat(StatusCode.of(controller.logs().errors(1).getFirst().status()))
        .isEqualTo(StatusCode.INVALID_FIELD);
  }

  @Test
  void otherLogs() {
    assertThat(controller.logs().firmwareSlots().getInt(FirmwareSlotLog.AFI) & 7).isBetween(1, 7);
    if ((controller.identify().getInt(IdentifyController.LPA)
            & IdentifyController.LPA_COMMANDS_EFFECTS)
        != 0) {
      assertThat(controller.logs().commandsEffects().segment().byteSize()).isEqualTo(4096);
    }
    NvmeStatusException e =
        catchThrowableOfType(NvmeStatusException.class, () -> controller.logs().read(0xBF, 4));
    assertThat(StatusCode.of(e.status()))
        .isIn(StatusCode.INVALID_LOG_PAGE, StatusCode.INVALID_FIELD);
  }

  // ---- queues

  @Test
  void queuesOfOddSizesWork() {
    int most = controller.cap().get(Cap.MQES) + 1;
    int[][] sizes = {
      {2, 2}, {2, most}, {most, 2}, {3, 5}, {7, 4}, {17, 16}, {most, most}, {most - 1, most}
    };
    for (int[] size : sizes) {
      int sq = Math.min(size[0], most);
      int cq = Math.min(size[1], most);
      int depth = Math.min(sq, cq) - 1;
      QueuePair queue = controller.createQueuePair(depth, sq, cq);
      runWrapped(queue, Math.min(3 * most, 3 * Math.max(sq, cq)) + 1);
      controller.deleteQueuePair(queue);
    }
  }

  @Test
  void queueSizesBeyondTheLimitAreRefused() {
    int most = controller.cap().get(Cap.MQES) + 1;
    assumeTrue(most < 65536, "queues of every size are allowed");
    assertThatThrownBy(() -> controller.createQueuePair(1, most + 1, 2))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("CAP.MQES");
    assertThatThrownBy(() -> controller.createQueuePair(1, 2, most + 1))
        .isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> controller.createQueuePair(0))
        .isInstanceOf(InvalidRequestException.class);
  }

  @Test
  void allQueuePairsAtOnceAndAgain() {
    for (int round = 0; round < 2; round++) {
      List<QueuePair> pairs = new ArrayList<>();
      for (int i = 0; i < controller.maxQueuePairs(); i++) {
        pairs.add(controller.createQueuePair(2));
      }
      assertThat(pairs.stream().map(QueuePair::qid).distinct()).hasSameSizeAs(pairs);
      assertThatThrownBy(() -> controller.createQueuePair(2))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("in use");
      runWrapped(pairs.getFirst(), 7);
      runWrapped(pairs.getLast(), 7);
      pairs.forEach(controller::deleteQueuePair);
    }
  }

  // ---- trouble

  @Test
  void eventWhenATemperatureThresholdIsCrossed() {
    List<AsyncEvent> heard = new ArrayList<>();
    controller.events().listen(heard::add);
    int old = controller.features().get(FeatureId.TEMPERATURE_THRESHOLD);
    int now = controller.logs().smart().getInt(SmartLog.COMPOSITE_TEMPERATURE);
    controller.features().set(FeatureId.TEMPERATURE_THRESHOLD, now - 10);
    long start = System.nanoTime();
    while (heard.isEmpty() && System.nanoTime() - start < 5_000_000_000L) {
      controller.pollEvents();
      controller.logs().smart();
    }
    controller.features().set(FeatureId.TEMPERATURE_THRESHOLD, old);
    assertThat(heard).isNotEmpty();
    assertThat(heard.getFirst().type()).isEqualTo(AsyncEvent.TYPE_SMART);
    assertThat(heard.getFirst().info()).isEqualTo(AsyncEvent.SMART_TEMPERATURE);
  }

  @Test
  void abortOfNothingDoesNoHarm() {
    QueuePair queue = controller.createQueuePair(4);
    assertThat(controller.abort(queue, 0xFFFF)).isFalse();
    runWrapped(queue, 9);
  }

  @Test
  void recoveryOfAHealthyQueueDoesNothing() {
    QueuePair queue = controller.createQueuePair(4);
    RecoveryOutcome outcome = controller.recover(queue, (q, slot, status) -> {});
    assertThat(outcome.rung()).isEqualTo(RecoveryOutcome.Rung.POLL);
    assertThat(controller.resets()).isZero();
    runWrapped(queue, 9);
  }

  @Test
  void brokenByItsOwnerAQueueIsCreatedAnew() {
    QueuePair queue = controller.createQueuePair(4);
    runWrapped(queue, 3);
    queue.breakQueue();
    assertThat(queue.hasRoom()).isFalse();
    RecoveryOutcome outcome = controller.recover(queue, (q, slot, status) -> {});
    assertThat(outcome.rung()).isEqualTo(RecoveryOutcome.Rung.QUEUE);
    runWrapped(queue, 9);
  }

  @Test
  void resetUnderLoadLosesNothing() throws Exception {
    AtomicBoolean stop = new AtomicBoolean();
    int threads = Math.min(3, controller.maxQueuePairs());
    List<Future<Integer>> done = new ArrayList<>();
    try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
      for (int t = 0; t < threads; t++) {
        int mark = t;
        done.add(pool.submit(() -> hammer(mark, 2000L * mark, stop, Integer.MAX_VALUE)));
      }
      for (int i = 0; i < 3; i++) {
        Thread.sleep(50);
        controller.reset();
      }
      Thread.sleep(50);
      stop.set(true);
      for (Future<Integer> f : done) {
        assertThat(f.get(30, TimeUnit.SECONDS)).as(where("rounds")).isPositive();
      }
    } finally {
      stop.set(true);
    }
    assertThat(controller.resets()).isEqualTo(3);
    runWrapped(controller.createQueuePair(3), 5);
  }

  @Test
  void functionResetLosesNothing() {
    try (BlockDevice device = device(8)) {
      int size = device.namespace().blockSize();
      DmaBuffer b = buffer(100L * size);
      Blocks.fill(b.memory(), 0, 50, 100, size, 10);
      device.write(50, 100, b.range(), 0);
      device.flush();
      controller.function().reset();
      Bar bar = controller.function().bar(0);
      assertThat(new Cc(bar.read32(Registers.CC)).isSet(Cc.EN)).isFalse();
      controller.reset();
      b.memory().fill((byte) 0);
      device.read(50, 100, b.range(), 0);
      assertThat(Blocks.mismatch(b.memory(), 0, 50, 100, size, 10)).isEqualTo(-1);
    }
  }

  @Test
  void contentsSurviveShutdownAndReopening() {
    try (BlockDevice device = device(8)) {
      int size = device.namespace().blockSize();
      DmaBuffer b = buffer(100L * size);
      Blocks.fill(b.memory(), 0, 50, 100, size, 9);
      device.write(50, 100, b.range(), 0);
      device.flush();
    }
    reopen(o -> {});
    try (BlockDevice device = device(8)) {
      int size = device.namespace().blockSize();
      DmaBuffer b = buffer(100L * size);
      device.read(50, 100, b.range(), 0);
      assertThat(Blocks.mismatch(b.memory(), 0, 50, 100, size, 9)).isEqualTo(-1);
    }
  }

  @Test
  void closedDevicesSaySo() {
    BlockDevice device = device(4);
    DmaBuffer b = buffer(device.namespace().blockSize());
    device.close();
    device.close();
    assertThatThrownBy(() -> device.read(0, 1, b.range(), 0))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("is closed");
  }

  @Test
  void shutDownControllersComeBackWithAReset() {
    controller.shutdown();
    controller.reset();
    runWrapped(controller.createQueuePair(3), 9);
  }
}
