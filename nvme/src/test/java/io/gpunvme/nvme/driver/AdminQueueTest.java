package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.AsyncEvent;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.LogId;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.nvme.spec.Vs;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Admin commands: deadlines, trouble while waiting, several threads, stray completions. */
class AdminQueueTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(1);

  private final FakeFunction function = new FakeFunction();
  private final FakeAdmin fake = function.admin();
  private NvmeController controller;

  @BeforeEach
  void open() {
    controller =
        NvmeController.open(function, ControllerOptions.builder().adminTimeout(TIMEOUT).build());
  }

  @AfterEach
  void close() {
    controller.close();
    assertThat(function.mappedRanges()).isZero();
  }

  private static int identifyNever(MemorySegment sqe) {
    return Sqe.opcode(sqe, 0) == AdminOpcode.IDENTIFY ? FakeAdmin.NEVER : FakeAdmin.NORMAL;
  }

  private void identify() {
    assertThat(
            new IdentifyController(controller.identify(Cns.CONTROLLER, 0))
                .getText(IdentifyController.SN))
        .isEqualTo("F1");
  }

  /** Makes one kind of command never complete until the controller is enabled again. */
  private void loseIdentifyOnce() {
    int enables = function.ccWrites.size();
    fake.first =
        (sqe, data) -> function.ccWrites.size() == enables ? identifyNever(sqe) : FakeAdmin.NORMAL;
  }

  @Test
  void eventRequestsSayWhetherTheyWereSent() {
    QueuePair queue = controller.admin().queue();
    fake.first = (sqe, data) -> FakeAdmin.NEVER;
    int sent = 0;
    while (controller.admin().requestEvent()) {
      sent++;
    }
    assertThat(sent).isPositive();
    assertThat(queue.hasRoom()).isFalse();
    assertThat(controller.admin().requestEvent()).isFalse();
    controller.pollEvents();
    fake.first = (sqe, data) -> FakeAdmin.NORMAL;
    controller.reset();
    identify();
    assertThat(fake.eventRequests()).isEqualTo(4);
  }

  @Test
  void eventRequestsThatCouldNotBeSentAreSentLater() {
    SimRig.await("the first requests", () -> fake.eventRequests() == 4);
    int event = AsyncEvent.of(AsyncEvent.TYPE_VENDOR, 3, LogId.SUPPORTED).dw0();
    fake.event(event);
    List<Integer> held = new CopyOnWriteArrayList<>();
    fake.first =
        (sqe, data) -> {
          held.add(Sqe.cid(sqe, 0));
          return FakeAdmin.NEVER;
        };
    int before = controller.admin().queue().inFlight();
    int filled = 0;
    while (controller.admin().requestEvent()) {
      filled++;
    }
    int all = filled;
    assertThat(before + all).isGreaterThanOrEqualTo(controller.admin().queue().depth());
    // The event's own slot went to a filler: there is none for the next request.
    assertThat(controller.pollEvents()).containsExactly(new AsyncEvent(event));
    SimRig.await("the fillers", () -> held.size() == all);
    fake.first = (sqe, data) -> FakeAdmin.NORMAL;
    held.forEach(cid -> fake.post(cid, StatusCode.ABORT_REQUESTED.status(), 0));
    SimRig.await(
        "a request in the event's place",
        () -> {
          controller.pollEvents();
          return fake.eventRequests() == 4;
        });
  }

  @Test
  void errorsCarryStatusOpcodeAndQueue() {
    fake.first = (sqe, data) -> StatusCode.INVALID_LOG_PAGE.dnr();
    Throwable thrown = catchThrowable(() -> controller.logs().read(LogId.SMART, 512));
    fake.first = (sqe, data) -> FakeAdmin.NORMAL;
    assertThat(thrown).isInstanceOf(NvmeStatusException.class);
    NvmeStatusException e = (NvmeStatusException) thrown;
    assertThat(e.status()).isEqualTo(StatusCode.INVALID_LOG_PAGE.dnr());
    assertThat(e.opcode()).isEqualTo(AdminOpcode.GET_LOG_PAGE);
    assertThat(e.qid()).isZero();
    assertThat(e.retryable()).isFalse();
  }

  @Test
  void silenceResetsTheControllerAndTheNextCommandWorks() {
    loseIdentifyOnce();
    long start = System.nanoTime();
    assertThatThrownBy(() -> controller.identify(Cns.CONTROLLER, 0))
        .isInstanceOf(NvmeTimeoutException.class)
        .hasMessageContainingAll(
            "Identify did not complete within 1000 ms", "CSTS 00000001h", "was reset in");
    assertThat((System.nanoTime() - start) / 1_000_000).isBetween(1000L, 20_000L);
    assertThat(controller.resets()).isEqualTo(1);
    identify();
  }

  @Test
  void fatalStatusWhileWaitingResetsAtOnce() {
    loseIdentifyOnce();
    int enables = function.ccWrites.size();
    function.status =
        (normal, reads) -> function.ccWrites.size() == enables ? normal | Csts.CFS.mask() : normal;
    assertThatThrownBy(() -> controller.identify(Cns.CONTROLLER, 0))
        .isInstanceOf(ControllerFatalException.class)
        .hasMessageContainingAll("while waiting for Identify", "CSTS.CFS", "was reset in");
    identify();
  }

  @Test
  void goneWhileWaitingIsFinal() {
    fake.first = (sqe, data) -> identifyNever(sqe);
    function.status = (normal, reads) -> -1;
    assertThatThrownBy(() -> controller.identify(Cns.CONTROLLER, 0))
        .isInstanceOf(DeviceGoneException.class);
    assertThat(function.busMaster()).isFalse();
    long start = System.nanoTime();
    assertThatThrownBy(() -> controller.identify(Cns.CONTROLLER, 0))
        .isInstanceOf(DeviceGoneException.class)
        .hasMessageContaining("out of service");
    assertThatThrownBy(controller::pollEvents).isInstanceOf(DeviceGoneException.class);
    assertThatThrownBy(() -> controller.createQueuePair(3)).isInstanceOf(DeviceGoneException.class);
    assertThat((System.nanoTime() - start) / 1_000_000).isLessThan(200);
  }

  /** QEMU's bus where a device was unplugged; elsewhere there are ones. */
  @Test
  void zerosEverywhereAreNoControllerEither() {
    fake.first = (sqe, data) -> identifyNever(sqe);
    function.cap = new Cap(0);
    function.version = new Vs(0);
    function.status = (normal, reads) -> 0;
    assertThatThrownBy(() -> controller.identify(Cns.CONTROLLER, 0))
        .isInstanceOf(NvmeTimeoutException.class)
        .hasMessageContainingAll("resetting the controller failed", "zeros")
        .hasCauseInstanceOf(DeviceGoneException.class);
    assertThatThrownBy(() -> controller.identify(Cns.CONTROLLER, 0))
        .isInstanceOf(DeviceGoneException.class)
        .hasMessageContaining("out of service");
  }

  @Test
  void failedResetIsFinalUntilAResetWorks() {
    fake.first = (sqe, data) -> identifyNever(sqe);
    assertThatThrownBy(() -> controller.identify(Cns.CONTROLLER, 0))
        .isInstanceOf(NvmeTimeoutException.class)
        .hasMessageContaining("resetting the controller failed");
    assertThat(function.busMaster()).isFalse();
    assertThatThrownBy(() -> controller.identify(Cns.CONTROLLER, 0))
        .isInstanceOf(NvmeTimeoutException.class)
        .hasMessageContaining("out of service");
    fake.first = (sqe, data) -> FakeAdmin.NORMAL;
    assertThat(function.functionResets).isZero();
    controller.reset();
    identify();
    assertThat(function.busMaster()).isTrue();
    assertThat(function.functionResets).isEqualTo(1);
    controller.reset();
    assertThat(function.functionResets).isEqualTo(1);
  }

  @Test
  void strayCompletionsAreIgnored() {
    fake.first =
        (sqe, data) -> {
          fake.post(Sqe.cid(sqe, 0) ^ 0x20, 0, 1);
          fake.post(0x1F, StatusCode.INTERNAL_ERROR.status(), 2);
          return FakeAdmin.NORMAL;
        };
    identify();
    fake.first =
        (sqe, data) -> {
          fake.post(Sqe.cid(sqe, 0), 0, 0);
          return FakeAdmin.NORMAL;
        };
    controller.logs().smart();
    controller.logs().smart();
    fake.first = (sqe, data) -> FakeAdmin.NORMAL;
    identify();
    QueuePair queue = controller.admin().queue();
    assertThat(queue.stale() + queue.unknown()).isGreaterThanOrEqualTo(4);
  }

  @Test
  void manyThreadsShareTheQueue() throws Exception {
    int threads = 8;
    int rounds = 200;
    fake.first =
        (sqe, data) -> {
          if (Sqe.opcode(sqe, 0) == AdminOpcode.GET_FEATURES) {
            fake.result(Sqe.cdw11(sqe, 0) * 3);
            return 0;
          }
          return FakeAdmin.NORMAL;
        };
    List<Future<?>> done = new ArrayList<>();
    try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
      for (int t = 0; t < threads; t++) {
        int base = t * rounds;
        done.add(
            pool.submit(
                () -> {
                  for (int i = base; i < base + rounds; i++) {
                    assertThat(controller.features().get(1, 0, 0, i, 0).dw0()).isEqualTo(i * 3);
                  }
                }));
      }
      for (Future<?> f : done) {
        f.get(30, TimeUnit.SECONDS);
      }
    }
  }

  @Test
  void moreThreadsThanSlotsWaitForTheirTurn() throws Exception {
    FakeFunction small = new FakeFunction();
    try (NvmeController narrow =
            NvmeController.open(
                small, ControllerOptions.builder().adminEntries(8).asyncEvents(false).build());
        ExecutorService pool = Executors.newFixedThreadPool(20)) {
      Callable<MemorySegment> call = () -> narrow.identify(Cns.CONTROLLER, 0);
      List<Callable<MemorySegment>> calls = java.util.Collections.nCopies(100, call);
      for (Future<MemorySegment> f : pool.invokeAll(calls)) {
        assertThat(f.get().byteSize()).isEqualTo(4096);
      }
    }
  }

  @Test
  void resetEndsCommandsOfOtherThreads() throws Exception {
    CountDownLatch sent = new CountDownLatch(1);
    int enables = function.ccWrites.size();
    fake.first =
        (sqe, data) -> {
          if (Sqe.opcode(sqe, 0) != AdminOpcode.GET_LOG_PAGE
              || function.ccWrites.size() != enables) {
            return FakeAdmin.NORMAL;
          }
          sent.countDown();
          return FakeAdmin.NEVER;
        };
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    Thread waiter =
        Thread.ofPlatform().start(() -> thrown.set(catchThrowable(controller.logs()::smart)));
    assertThat(sent.await(5, TimeUnit.SECONDS)).isTrue();
    controller.reset();
    waiter.join(5000);
    assertThat(thrown.get())
        .isInstanceOf(CommandAbortedException.class)
        .hasMessageContaining("Get Log Page");
    controller.logs().smart();
  }

  @Test
  void commandsDuringAResetWaitForItsEnd() throws Exception {
    List<Future<MemorySegment>> done = new ArrayList<>();
    try (ExecutorService pool = Executors.newFixedThreadPool(4)) {
      int resets = 20;
      for (int i = 0; i < resets; i++) {
        for (int t = 0; t < 4; t++) {
          done.add(pool.submit(() -> controller.identify(Cns.CONTROLLER, 0)));
        }
        controller.reset();
      }
    }
    for (Future<MemorySegment> f : done) {
      Throwable t = catchThrowable(f::get);
      if (t != null) {
        assertThat(t).hasCauseInstanceOf(CommandAbortedException.class);
      }
    }
    identify();
  }

  @Test
  void rawCommandsMoveData() {
    AdminCommand command = AdminCommand.identify(Cns.CONTROLLER, 0);
    try (DmaBuffer buffer = DmaBuffer.allocate(function, 4096)) {
      controller.admin().execute(command.sqe(), buffer, 4096);
      assertThat(new IdentifyController(buffer.memory()).getText(IdentifyController.MN))
          .isEqualTo("fake");
    }
    assertThat(controller.admin().execute(AdminCommand.of(AdminOpcode.ABORT).sqe())).isZero();
  }

  @Test
  void longLogsAreReadInPiecesAndKeepTheirEventUntilTheLast() {
    List<String> commands = new ArrayList<>();
    fake.first =
        (sqe, data) -> {
          if (Sqe.opcode(sqe, 0) == AdminOpcode.GET_LOG_PAGE) {
            commands.add(
                "%x %d %d".formatted(Sqe.cdw10(sqe, 0), Sqe.cdw12(sqe, 0), Sqe.cdw13(sqe, 0)));
            data.set(ValueLayout.JAVA_INT, 0, Sqe.cdw12(sqe, 0));
          }
          return FakeAdmin.NORMAL;
        };
    MemorySegment log = controller.logs().read(0x30, 1, 8, 9000, false);
    assertThat(commands).containsExactly("3ff8030 8 0", "3ff8030 4104 0", "c90030 8200 0");
    assertThat(log.get(ValueLayout.JAVA_INT_UNALIGNED, 8192)).isEqualTo(8200);
    commands.clear();
    controller.logs().read(0x30, 1, 1L << 32, 4, true);
    assertThat(commands).containsExactly("8030 0 1");
  }

  @Test
  void senselessRequestsAreRefusedBeforeTheyAreSent() {
    assertThatThrownBy(() -> controller.logs().read(1, 3))
        .isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> controller.logs().read(1, 0))
        .isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> controller.logs().read(1, 1, 2, 4, false))
        .isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> controller.features().get(1, 0, 0, 0, 4100))
        .isInstanceOf(InvalidRequestException.class);
  }

  @Test
  void featuresWithData() {
    fake.first =
        (sqe, data) -> {
          if (Sqe.opcode(sqe, 0) == AdminOpcode.GET_FEATURES) {
            data.set(ValueLayout.JAVA_INT, 4, 77);
            fake.result(Sqe.cdw10(sqe, 0));
            return 0;
          }
          if (Sqe.opcode(sqe, 0) == AdminOpcode.SET_FEATURES) {
            fake.result(data.get(ValueLayout.JAVA_INT, 8));
            return 0;
          }
          return FakeAdmin.NORMAL;
        };
    ControllerFeatures.Value value = controller.features().get(0x16, 2, 3, 0, 512);
    assertThat(value.dw0()).isEqualTo(0x316);
    assertThat(value.data().get(ValueLayout.JAVA_INT_UNALIGNED, 4)).isEqualTo(77);
    MemorySegment data = MemorySegment.ofArray(new int[] {1, 2, 3, 4});
    assertThat(controller.features().set(0x16, 0, true, 0, data)).isEqualTo(3);
    assertThat(fake.log.getLast()).contains("80000016");
  }

  @Test
  void formatIsRefusedOnAReadOnlyController() {
    assertThatThrownBy(() -> controller.format(1, 0, 0))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("allowWrite");
    assertThat(fake.seen).doesNotContain(AdminOpcode.FORMAT_NVM);
  }

  @Test
  void formatSendsTheUpperIndexBitsToo() {
    FakeFunction other = new FakeFunction();
    try (NvmeController writable =
        NvmeController.open(other, ControllerOptions.builder().allowWrite(true).build())) {
      writable.format(1, 0x25, 1);
      assertThat(other.admin().log)
          .anyMatch(line -> line.startsWith("opcode 80h") && line.contains("00002205"));
      assertThatThrownBy(() -> writable.format(1, 64, 0))
          .isInstanceOf(InvalidRequestException.class);
      assertThatThrownBy(() -> writable.format(1, 0, 3))
          .isInstanceOf(InvalidRequestException.class);
      other.admin().controller.set(IdentifyController.OACS, 0);
      writable.reset();
      assertThatThrownBy(() -> writable.format(1, 0, 0))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("OACS");
    }
  }

  @Test
  void abortTellsWhetherTheCommandWasFound() {
    QueuePair queue = controller.createQueuePair(4);
    fake.first =
        (sqe, data) -> {
          fake.result(Sqe.opcode(sqe, 0) == AdminOpcode.ABORT ? Sqe.cdw10(sqe, 0) >>> 16 & 1 : 0);
          return FakeAdmin.NORMAL;
        };
    assertThat(controller.abort(queue, 4)).isTrue();
    assertThat(controller.abort(queue, 5)).isFalse();
    assertThat(fake.log.getLast()).contains("00050001");
  }
}
