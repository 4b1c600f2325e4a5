package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.AsyncEvent;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.HostMemoryBufferEntry;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.LogId;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;

/** Shutdown, events, Keep Alive and host memory against the scripted function. */
class LifecycleTest {
  private final FakeFunction function = new FakeFunction();
  private final FakeAdmin fake = function.admin();

  private NvmeController open() {
    return NvmeController.open(function, ControllerOptions.defaults());
  }

  private static void await(BooleanSupplier condition) {
    long start = System.nanoTime();
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime() - start).as("waited too long").isLessThan(10_000_000_000L);
      Thread.onSpinWait();
    }
  }

  // ---- shutdown

  @Test
  void closeShutsDownInOrder() {
    NvmeController controller = open();
    controller.createQueuePair(3);
    controller.createQueuePair(7);
    fake.seen.clear();
    controller.close();
    assertThat(fake.seen)
        .containsExactly(
            AdminOpcode.DELETE_IO_SQ,
            AdminOpcode.DELETE_IO_CQ,
            AdminOpcode.DELETE_IO_SQ,
            AdminOpcode.DELETE_IO_CQ);
    assertThat(function.ccWrites.getLast().get(Cc.SHN)).isEqualTo(Cc.SHN_NORMAL);
    assertThat(function.ccWrites.getLast().isSet(Cc.EN)).isTrue();
    assertThat(function.closed).isTrue();
    assertThat(function.busMaster()).isFalse();
    assertThat(function.mappedRanges()).isZero();
    controller.close();
  }

  @Test
  void shutdownThatNeverCompletes() {
    NvmeController controller =
        NvmeController.open(
            function, ControllerOptions.builder().shutdownTimeout(Duration.ofMillis(50)).build());
    function.status = (normal, reads) -> normal & ~(3 << 2) | Csts.SHST_OCCURRING << 2;
    assertThatThrownBy(controller::shutdown)
        .isInstanceOf(NvmeTimeoutException.class)
        .hasMessageContainingAll("shutdown", "50 ms", "CSTS 00000005h");
    assertThatCode(controller::close).doesNotThrowAnyException();
    assertThat(function.mappedRanges()).isZero();
  }

  @Test
  void shutdownWaitsAsLongAsRtd3e() {
    fake.controller.set(IdentifyController.RTD3E, 300_000);
    NvmeController controller =
        NvmeController.open(
            function, ControllerOptions.builder().shutdownTimeout(Duration.ofMillis(1)).build());
    function.status = (normal, reads) -> normal & ~(3 << 2);
    long start = System.nanoTime();
    assertThatThrownBy(controller::shutdown).isInstanceOf(NvmeTimeoutException.class);
    assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(300_000_000L);
    controller.close();
  }

  @Test
  void afterShutdownOnlyResetHelps() {
    try (NvmeController controller = open()) {
      controller.shutdown();
      controller.shutdown();
      assertThatThrownBy(() -> controller.identify(Cns.CONTROLLER, 0))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("was shut down");
      controller.reset();
      assertThat(function.ccWrites.getLast().get(Cc.SHN)).isEqualTo(Cc.SHN_NONE);
      controller.identify(Cns.CONTROLLER, 0);
    }
  }

  @Test
  void closedControllersSaySo() {
    NvmeController controller = open();
    QueuePair queue = controller.createQueuePair(3);
    controller.close();
    assertThatThrownBy(() -> controller.identify(Cns.CONTROLLER, 0))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("is closed");
    assertThatThrownBy(controller::reset).isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> controller.createQueuePair(3))
        .isInstanceOf(InvalidRequestException.class);
    assertThat(controller.recover(queue, (q, slot, status) -> {}).recovered()).isFalse();
    assertThatCode(() -> controller.deleteQueuePair(queue)).doesNotThrowAnyException();
  }

  @Test
  void closeAfterTheDeviceIsGone() {
    NvmeController controller = open();
    controller.createQueuePair(3);
    function.status = (normal, reads) -> -1;
    assertThatCode(controller::close).doesNotThrowAnyException();
    assertThat(function.closed).isTrue();
    assertThat(function.mappedRanges()).isZero();
  }

  @Test
  void guardClosesWhatIsOpen() {
    int before = ShutdownGuard.open();
    NvmeController first = open();
    FakeFunction other = new FakeFunction();
    NvmeController second = NvmeController.open(other, ControllerOptions.defaults());
    assertThat(ShutdownGuard.open()).isEqualTo(before + 2);
    first.close();
    assertThat(ShutdownGuard.open()).isEqualTo(before + 1);
    ShutdownGuard.closeAll();
    assertThat(other.closed).isTrue();
    assertThat(ShutdownGuard.open()).isZero();
    second.close();
  }

  // ---- bring-up report

  @Test
  void reportsEveryStep() {
    try (NvmeController controller = open()) {
      assertThat(FakeFunction.states(controller.bringUpSteps()))
          .containsSequence("WAIT_READY", "IDENTIFY", "NAMESPACES", "QUEUES")
          .endsWith("HOST_MEMORY_BUFFER", "EVENTS");
      assertThat(controller.bringUpSteps().toString()).contains("fake, serial F1", "4 pairs");
    }
  }

  // ---- events

  @Test
  void eventsAreDeliveredOnceAndRequestedAgain() {
    fake.controller.set(
        IdentifyController.OAES, IdentifyController.OAES_NAMESPACE_ATTRIBUTES | 1 << 14);
    try (NvmeController controller = open()) {
      await(() -> fake.eventRequests() == 4);
      assertThat(fake.log)
          .anyMatch(l -> l.startsWith("opcode 09h") && l.contains("0000000B 0000011F"));
      List<AsyncEvent> heard = new ArrayList<>();
      controller.events().listen(heard::add);
      assertThat(controller.pollEvents()).isEmpty();
      int smart = AsyncEvent.of(AsyncEvent.TYPE_SMART, 1, LogId.SMART).dw0();
      int namespaces = AsyncEvent.of(AsyncEvent.TYPE_NOTICE, 0, LogId.CHANGED_NAMESPACES).dw0();
      assertThat(fake.event(smart)).isTrue();
      assertThat(fake.event(namespaces)).isTrue();
      fake.log.clear();
      assertThat(controller.pollEvents())
          .containsExactly(new AsyncEvent(smart), new AsyncEvent(namespaces));
      assertThat(heard).containsExactly(new AsyncEvent(smart), new AsyncEvent(namespaces));
      assertThat(controller.pollEvents()).isEmpty();
      await(() -> fake.eventRequests() == 4);
      assertThat(fake.log).anyMatch(l -> l.startsWith("opcode 02h") && l.contains("007F0002"));
      assertThat(fake.log).anyMatch(l -> l.startsWith("opcode 02h") && l.contains("03FF0004"));
    }
  }

  @Test
  void eventsTakenInByOtherCommandsAreKept() {
    try (NvmeController controller = open()) {
      await(() -> fake.eventRequests() == 4);
      fake.event(AsyncEvent.of(AsyncEvent.TYPE_ERROR, 3, LogId.ERROR).dw0());
      controller.identify(Cns.CONTROLLER, 0);
      assertThat(controller.pollEvents()).hasSize(1);
    }
  }

  @Test
  void noMoreRequestsThanTheControllerHolds() {
    fake.controller.set(IdentifyController.AERL, 0);
    try (NvmeController controller = open()) {
      controller.identify(Cns.CONTROLLER, 0);
      assertThat(fake.eventRequests()).isEqualTo(1);
      controller.reset();
      controller.identify(Cns.CONTROLLER, 0);
      assertThat(fake.eventRequests()).isEqualTo(1);
    }
  }

  @Test
  void eventWhoseLogCannotBeReadIsDelivered() {
    try (NvmeController controller = open()) {
      await(() -> fake.eventRequests() == 4);
      fake.event(AsyncEvent.of(AsyncEvent.TYPE_VENDOR, 3, 0xC0).dw0());
      fake.first =
          (sqe, data) ->
              Sqe.opcode(sqe, 0) == AdminOpcode.GET_LOG_PAGE
                  ? StatusCode.INVALID_LOG_PAGE.dnr()
                  : FakeAdmin.NORMAL;
      assertThat(controller.pollEvents()).hasSize(1);
      await(() -> fake.eventRequests() == 4);
    }
  }

  @Test
  void eventsCanBeLeftOff() {
    try (NvmeController controller =
        NvmeController.open(function, ControllerOptions.builder().asyncEvents(false).build())) {
      controller.identify(Cns.CONTROLLER, 0);
      assertThat(fake.seen).doesNotContain(AdminOpcode.ASYNC_EVENT_REQUEST);
    }
  }

  // ---- Keep Alive

  @Test
  void keepAliveIsSentAndSurvivesAReset() {
    fake.controller.set(IdentifyController.KAS, 1);
    ControllerOptions options =
        ControllerOptions.builder().keepAlive(Duration.ofMillis(130)).build();
    NvmeController controller = NvmeController.open(function, options);
    assertThat(fake.log)
        .anyMatch(l -> l.startsWith("opcode 09h") && l.contains("0000000F 000000C8"));
    await(() -> fake.seen.contains(AdminOpcode.KEEP_ALIVE));
    controller.reset();
    fake.seen.clear();
    await(() -> fake.seen.contains(AdminOpcode.KEEP_ALIVE));
    assertThat(controller.keepAlive().running()).isTrue();
    assertThat(controller.keepAlive().failure()).isNull();
    controller.keepAlive().send();
    controller.close();
    await(() -> !controller.keepAlive().running());
  }

  @Test
  void keepAliveNeedsTheController() {
    assertThatThrownBy(
            () ->
                NvmeController.open(
                    function, ControllerOptions.builder().keepAlive(Duration.ofSeconds(1)).build()))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("KAS");
    assertThat(function.mappedRanges()).isZero();
  }

  // ---- host memory buffer

  private record Lent(int pages, int entries, List<Long> sizes) {}

  /** Remembers what Set Features, Host Memory Buffer said. */
  private List<Lent> watchHostMemory() {
    List<Lent> lent = new ArrayList<>();
    fake.first =
        (sqe, data) -> {
          if (Sqe.opcode(sqe, 0) != AdminOpcode.SET_FEATURES
              || Sqe.cdw10(sqe, 0) != FeatureId.HOST_MEMORY_BUFFER) {
            return FakeAdmin.NORMAL;
          }
          int count = Sqe.cdw15(sqe, 0);
          List<Long> sizes = new ArrayList<>();
          if ((Sqe.cdw11(sqe, 0) & 1) != 0) {
            long list = Integer.toUnsignedLong(Sqe.cdw13(sqe, 0)) | (long) Sqe.cdw14(sqe, 0) << 32;
            MemorySegment entries = function.at(list, (long) count * HostMemoryBufferEntry.SIZE);
            for (int i = 0; i < count; i++) {
              long at = (long) i * HostMemoryBufferEntry.SIZE;
              long bytes = HostMemoryBufferEntry.bsize(entries, at) * 4096;
              boolean reachable =
                  function.at(HostMemoryBufferEntry.badd(entries, at), bytes) != null;
              sizes.add(reachable ? bytes : -1);
            }
          }
          lent.add(new Lent(Sqe.cdw12(sqe, 0), count, sizes));
          return 0;
        };
    return lent;
  }

  private NvmeController openWith(long limit) {
    return NvmeController.open(
        function, ControllerOptions.builder().hostMemoryBufferBytes(limit).build());
  }

  @Test
  void lendsWhatTheControllerPrefersAndTakesItBack() {
    fake.controller.set(IdentifyController.HMPRE, 2560).set(IdentifyController.HMMIN, 16);
    List<Lent> lent = watchHostMemory();
    NvmeController controller = openWith(64 << 20);
    assertThat(lent).containsExactly(new Lent(2560, 3, List.of(4L << 20, 4L << 20, 2L << 20)));
    assertThat(controller.hostMemoryBuffer().bytes()).isEqualTo(10 << 20);
    controller.reset();
    assertThat(lent).hasSize(2);
    assertThat(lent.get(1)).isEqualTo(lent.get(0));
    controller.close();
    assertThat(lent.get(2)).isEqualTo(new Lent(0, 0, List.of()));
    assertThat(function.mappedRanges()).isZero();
  }

  @Test
  void lendsNoMoreThanTheLimit() {
    fake.controller.set(IdentifyController.HMPRE, 1 << 20).set(IdentifyController.HMMIN, 16);
    List<Lent> lent = watchHostMemory();
    try (NvmeController controller = openWith(6 << 20)) {
      assertThat(lent.getFirst().pages()).isEqualTo(6 << 8);
      assertThat(controller.hostMemoryBuffer().status()).contains("in 2 pieces");
    }
  }

  @Test
  void respectsSizeAndNumberOfPieces() {
    fake.controller
        .set(IdentifyController.HMPRE, 16 << 8)
        .set(IdentifyController.HMMIN, 16)
        .set(IdentifyController.HMMINDS, 8 << 8)
        .set(IdentifyController.HMMAXD, 2);
    List<Lent> lent = watchHostMemory();
    openWith(64 << 20).close();
    assertThat(lent.getFirst().sizes()).containsExactly(8L << 20, 8L << 20);

    FakeFunction few = new FakeFunction();
    few.admin()
        .controller
        .set(IdentifyController.HMPRE, 64 << 8)
        .set(IdentifyController.HMMIN, 16)
        .set(IdentifyController.HMMAXD, 3);
    try (NvmeController controller = NvmeController.open(few, ControllerOptions.defaults())) {
      assertThat(controller.hostMemoryBuffer().status())
          .isEqualTo((64 << 20) + " bytes in 3 pieces");
    }
  }

  @Test
  void doesWithoutWhenItCannot() {
    fake.controller.set(IdentifyController.HMPRE, 256).set(IdentifyController.HMMIN, 256);
    List<Lent> lent = watchHostMemory();
    try (NvmeController controller = openWith(0)) {
      assertThat(controller.hostMemoryBuffer().status()).startsWith("off");
      controller.identify(Cns.CONTROLLER, 0);
    }
    assertThat(lent).isEmpty();
    try (NvmeController controller =
        NvmeController.open(
            fresh(256, 255), ControllerOptions.builder().hostMemoryBufferBytes(4096).build())) {
      assertThat(controller.hostMemoryBuffer().status()).contains("needs", "limit is 4096");
    }
    try (NvmeController controller =
        NvmeController.open(fresh(1, 2), ControllerOptions.defaults())) {
      assertThat(controller.hostMemoryBuffer().status()).contains("HMMIN");
    }
  }

  private static FakeFunction fresh(long preferred, long minimum) {
    FakeFunction function = new FakeFunction();
    function
        .admin()
        .controller
        .set(IdentifyController.HMPRE, preferred)
        .set(IdentifyController.HMMIN, minimum);
    return function;
  }

  @Test
  void lendsLessWhereLittleCanBeMapped() {
    fake.controller.set(IdentifyController.HMPRE, 64 << 8).set(IdentifyController.HMMIN, 1 << 8);
    function.mapLimit = 9 << 20;
    List<Lent> lent = watchHostMemory();
    try (NvmeController controller = open()) {
      assertThat(lent.getFirst().pages()).isEqualTo(8 << 8);
      assertThat(controller.hostMemoryBuffer().bytes()).isEqualTo(8 << 20);
    }
    FakeFunction tight = fresh(64 << 8, 32 << 8);
    tight.mapLimit = 9 << 20;
    try (NvmeController controller = NvmeController.open(tight, ControllerOptions.defaults())) {
      assertThat(controller.hostMemoryBuffer().status()).startsWith("no memory for");
      assertThat(tight.mappedRanges()).as("the admin queue alone").isEqualTo(1);
    }
  }

  @Test
  void refusedHostMemoryIsFreedAtOnce() {
    fake.controller.set(IdentifyController.HMPRE, 256).set(IdentifyController.HMMIN, 1);
    fake.first =
        (sqe, data) ->
            Sqe.opcode(sqe, 0) == AdminOpcode.SET_FEATURES
                    && Sqe.cdw10(sqe, 0) == FeatureId.HOST_MEMORY_BUFFER
                ? StatusCode.INTERNAL_ERROR.dnr()
                : FakeAdmin.NORMAL;
    try (NvmeController controller = open()) {
      assertThat(controller.hostMemoryBuffer().status()).startsWith("refused");
      assertThat(controller.hostMemoryBuffer().bytes()).isZero();
      assertThat(function.mappedRanges()).as("the admin queue alone").isEqualTo(1);
    }
  }

  @Test
  void optionsAreChecked() {
    List<Runnable> wrong =
        List.of(
            () -> ControllerOptions.builder().ioTimeout(Duration.ZERO).build(),
            () -> ControllerOptions.builder().adminTimeout(Duration.ofDays(2)).build(),
            () -> ControllerOptions.builder().adminEntries(7).build(),
            () -> ControllerOptions.builder().queuePairs(0).build(),
            () -> ControllerOptions.builder().maxTransferBytes(5000).build(),
            () -> ControllerOptions.builder().retries(-1).build(),
            () -> ControllerOptions.builder().keepAlive(Duration.ofMillis(-1)).build());
    for (Runnable build : wrong) {
      assertThatThrownBy(build::run).isInstanceOf(InvalidRequestException.class);
    }
  }
}
