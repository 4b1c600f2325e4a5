package io.gpunvme.gpu.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceStatus;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Short transfers that wait for each other, and beside a long one: a script plays the kernel. */
@Timeout(120)
class JoinedRequestsTest {
  private static final int RETRYABLE = StatusCode.NAMESPACE_NOT_READY.status();
  private static final int FINAL = RETRYABLE | 1 << 14;
  private static final long LONG = 64 << 20;

  private final SimulatedController device =
      SimulatedController.create(SimConfig.builder().workers(1).build());
  private final NvmeController controller =
      NvmeController.open(device, ControllerOptions.builder().allowWrite(true).build());
  private final FakeGpu gpu = new FakeGpu();
  private final ScriptedKernel script = new ScriptedKernel(64);
  private GpuInitiator initiator =
      new GpuInitiator(controller, gpu, script, Placement.HOST, 2, 4, 2);
  private final DeviceBuffer buffer = gpu.allocatePinned(LONG);
  private final AtomicBoolean firstMayEnd = new AtomicBoolean();
  private final List<Thread> threads = new ArrayList<>();

  @AfterEach
  void close() throws InterruptedException {
    script.endWhen(() -> true);
    for (Thread thread : threads) {
      thread.join();
    }
    initiator.close();
    controller.close();
    gpu.close();
  }

  private TransferPlan plan(Direction direction, int commands) {
    return TransferPlan.of(
        direction, controller.namespace(1), 4096, List.of(new Extent(0, commands * 8L, 0)));
  }

  /** Begins one in a thread of its own, and waits until it sleeps or its kernel runs. */
  private CompletableFuture<TransferReport> begin(
      Direction direction, int commands, TransferListener listener) {
    CompletableFuture<TransferReport> result = new CompletableFuture<>();
    int before = script.launches().size();
    Thread thread =
        Thread.ofPlatform()
            .start(
                () -> {
                  try {
                    result.complete(initiator.run(plan(direction, commands), buffer, listener));
                  } catch (Throwable e) {
                    result.completeExceptionally(e);
                  }
                });
    threads.add(thread);
    await(() -> waits(thread) || script.launches().size() > before);
    return result;
  }

  private static void await(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      // The limit of a test is an interrupt.
      assertThat(Thread.currentThread().isInterrupted()).isFalse();
      LockSupport.parkNanos(100_000);
    }
  }

  /** For its turn, or for somebody to carry it out. */
  private static boolean waits(Thread thread) {
    return thread.getState() == Thread.State.WAITING
        || Arrays.stream(thread.getStackTrace())
            .anyMatch(frame -> frame.getMethodName().equals("awaitLead"));
  }

  private CompletableFuture<TransferReport> read(int commands) {
    return begin(Direction.READ, commands, TransferListener.NONE);
  }

  /** The first launch lasts until it may end. */
  private CompletableFuture<TransferReport> holdFirst() {
    script.add(c -> 0);
    script.endWhen(() -> firstMayEnd.get());
    return read(1);
  }

  private static Throwable failure(CompletableFuture<?> result) {
    return assertThatThrownBy(result::join)
        .isInstanceOf(CompletionException.class)
        .actual()
        .getCause();
  }

  @Test
  void aShortOneHasOneWarpAndTellsWhatItMoved() {
    script.add(c -> 0);
    LongAdder moved = new LongAdder();
    TransferReport report = initiator.run(plan(Direction.READ, 8), buffer, moved::add);
    assertThat(script.launches()).singleElement().extracting(l -> l.warps()).isEqualTo(1);
    assertThat(moved.sum()).isEqualTo(8 * 4096);
    assertThat(report.commands()).isEqualTo(8);
    assertThat(report.queuePairs()).isEqualTo(1);
    assertThat(report.threads()).isEqualTo(1);
    assertThat(report.latency().getMinValue()).isEqualTo(1000);
  }

  @Test
  void thoseThatWaitAreCarriedOutTogether() {
    CompletableFuture<TransferReport> first = holdFirst();
    script.add(c -> 0);
    List<CompletableFuture<TransferReport>> others = List.of(read(1), read(3), read(2));
    firstMayEnd.set(true);
    assertThat(first.join().commands()).isEqualTo(1);
    assertThat(others.stream().map(r -> r.join().commands())).containsExactly(1L, 3L, 2L);
    assertThat(others.stream().map(r -> r.join().bytes()))
        .containsExactly(4096L, 3 * 4096L, 2 * 4096L);
    assertThat(script.given()).containsExactly(List.of(0), List.of(0, 1, 2, 3, 4, 5));
  }

  @Test
  void writesAndReadsGoTogether() {
    CompletableFuture<TransferReport> first = holdFirst();
    script.add(c -> 0);
    var others = List.of(read(1), begin(Direction.WRITE, 2, TransferListener.NONE), read(1));
    firstMayEnd.set(true);
    first.join();
    others.forEach(CompletableFuture::join);
    assertThat(script.given()).containsExactly(List.of(0), List.of(0, 1, 2, 3));
  }

  @Test
  void aKernelTakesNoMoreThanItsQueueHolds() {
    CompletableFuture<TransferReport> first = holdFirst();
    script.add(c -> 0);
    script.add(c -> 0);
    List<CompletableFuture<TransferReport>> others = new ArrayList<>();
    for (int i = 0; i < JoinedRequests.MOST_COMMANDS / 8 + 1; i++) {
      others.add(read(8));
    }
    firstMayEnd.set(true);
    first.join();
    others.forEach(CompletableFuture::join);
    assertThat(script.given().stream().map(List::size))
        .containsExactly(1, JoinedRequests.MOST_COMMANDS, 8);
  }

  @Test
  void aFailureEndsItsOwnTransferOnly() {
    CompletableFuture<TransferReport> first = holdFirst();
    script.add(c -> c == 1 ? FINAL : c == 2 || c == 5 ? RETRYABLE : 0);
    script.add(c -> 0);
    LongAdder moved = new LongAdder();
    List<CompletableFuture<TransferReport>> others =
        List.of(read(1), read(3), begin(Direction.READ, 2, moved::add));
    firstMayEnd.set(true);
    first.join();
    assertThat(failure(others.get(1)))
        .isInstanceOfSatisfying(NvmeStatusException.class, e -> assertThat(e.slba()).isZero());
    assertThat(others.getFirst().join().retries()).isZero();
    assertThat(others.getLast().join().retries()).isEqualTo(1);
    assertThat(others.getLast().join().commands()).isEqualTo(3);
    assertThat(moved.sum()).isEqualTo(2 * 4096);
    // Command 2 is one of the failed transfer.
    assertThat(script.given().getLast()).containsExactly(5);
  }

  @Test
  void whoIsCancelledWhileItWaitsIsNeverSubmitted() {
    CompletableFuture<TransferReport> first = holdFirst();
    script.add(c -> 0);
    AtomicBoolean cancelled = new AtomicBoolean();
    TransferListener listener =
        new TransferListener() {
          @Override
          public void moved(long bytes) {}

          @Override
          public boolean isCancelled() {
            return cancelled.get();
          }
        };
    List<CompletableFuture<TransferReport>> others =
        List.of(read(1), begin(Direction.READ, 5, listener), read(2));
    cancelled.set(true);
    firstMayEnd.set(true);
    first.join();
    assertThat(failure(others.get(1))).isInstanceOf(CommandAbortedException.class);
    others.getFirst().join();
    others.getLast().join();
    assertThat(script.given().getLast()).hasSize(3);
  }

  @Test
  void aThreadThatIsInterruptedWhileItWaitsGivesTheLeadAway() {
    CompletableFuture<TransferReport> first = holdFirst();
    script.add(c -> 0);
    // The first of those that wait would lead.
    List<CompletableFuture<TransferReport>> others = List.of(read(5), read(2));
    threads.get(1).interrupt();
    firstMayEnd.set(true);
    first.join();
    assertThat(failure(others.getFirst()))
        .isInstanceOf(CommandAbortedException.class)
        .hasMessageContaining("interrupt");
    assertThat(others.getLast().join().commands()).isEqualTo(2);
    assertThat(script.given().getLast()).hasSize(2);
  }

  @Test
  void aKernelThatFailsFailsAllThatItServesAndThoseThatWaitLearnThatNothingWasDone() {
    CompletableFuture<TransferReport> first = holdFirst();
    List<CompletableFuture<TransferReport>> served = List.of(read(1), read(1));
    AtomicBoolean secondMayFail = new AtomicBoolean();
    script.add(c -> 0);
    script.endWhen(
        () -> {
          if (script.launches().size() == 1) {
            return true;
          }
          if (secondMayFail.get()) {
            throw new IllegalStateException("illegal address");
          }
          return false;
        });
    first.join();
    await(() -> script.launches().size() == 2);
    CompletableFuture<TransferReport> waiting = read(1);
    secondMayFail.set(true);
    assertThat(served.stream().map(JoinedRequestsTest::failure))
        .allSatisfy(e -> assertThat(e).hasMessage("illegal address"));
    assertThat(failure(waiting)).isInstanceOf(BrokenInitiatorException.class);
    assertThat(script.launches()).hasSize(2);
  }

  @Test
  void aShortOnePassesALongOne() {
    AtomicBoolean longMayEnd = new AtomicBoolean();
    script.add(c -> 0);
    script.add(c -> 0);
    script.endWhen(longMayEnd::get);
    CompletableFuture<TransferReport> longOne = read(64);
    assertThat(script.launches()).hasSize(1);
    CompletableFuture<TransferReport> shortOne = read(1);
    await(() -> script.launches().size() == 2);
    assertThat(longOne).isNotDone();
    longMayEnd.set(true);
    assertThat(shortOne.join().queuePairs()).isEqualTo(1);
    assertThat(longOne.join().queuePairs()).isEqualTo(2);
    assertThat(script.launches().getFirst().queues())
        .isNotEqualTo(script.launches().getLast().queues());
  }

  @Test
  void withoutAnotherQueuePairShortOnesTakeTurnsWithLongOnes() {
    initiator.close();
    initiator =
        new GpuInitiator(
            controller, gpu, script, Placement.HOST, controller.maxQueuePairs() - 1, 4, 2);
    script.add(c -> 0);
    script.add(c -> 0);
    script.endWhen(firstMayEnd::get);
    CompletableFuture<TransferReport> longOne = read(64);
    CompletableFuture<TransferReport> shortOne = read(1);
    assertThat(script.launches()).hasSize(1);
    firstMayEnd.set(true);
    longOne.join();
    assertThat(shortOne.join().queuePairs()).isEqualTo(1);
    assertThat(script.launches()).hasSize(2);
  }

  @Test
  void whatWasNeverSubmittedCostsNoAttempt() {
    for (int i = 0; i < 5; i++) {
      script.add(c -> DeviceStatus.PENDING);
    }
    script.add(c -> 0);
    TransferReport report = initiator.run(plan(Direction.READ, 3), buffer, TransferListener.NONE);
    assertThat(report.retries()).isZero();
    assertThat(report.commands()).isEqualTo(3);
  }

  /** Asks a program once, which transfers meanwhile. */
  private TransferListener once(Runnable program) {
    AtomicBoolean asked = new AtomicBoolean();
    Thread owner = Thread.currentThread();
    return new TransferListener() {
      @Override
      public void moved(long bytes) {}

      @Override
      public boolean isCancelled() {
        if (Thread.currentThread() == owner && !asked.getAndSet(true)) {
          program.run();
        }
        return false;
      }
    };
  }

  @Test
  void aProgramThatIsAskedByALeaderMayTransfer() {
    script.add(c -> 0);
    script.add(c -> 0);
    script.endWhen(() -> script.launches().size() > 1);
    List<TransferReport> inner = new ArrayList<>();
    TransferReport outer =
        initiator.run(
            plan(Direction.READ, 2),
            buffer,
            once(
                () ->
                    inner.add(
                        initiator.run(plan(Direction.READ, 3), buffer, TransferListener.NONE))));
    assertThat(outer.commands()).isEqualTo(2);
    assertThat(inner).singleElement().extracting(TransferReport::commands).isEqualTo(3L);
  }

  @Test
  void aProgramThatIsAskedByOneThatWaitsMayTransfer() {
    CompletableFuture<TransferReport> first = holdFirst();
    script.add(c -> 0);
    script.add(c -> 0);
    List<TransferReport> inner = new ArrayList<>();
    // Of the queue pairs for long ones: the first still runs.
    script.endWhen(() -> firstMayEnd.get() || script.launches().size() == 2);
    TransferReport outer =
        initiator.run(
            plan(Direction.READ, 2),
            buffer,
            once(
                () -> {
                  inner.add(initiator.run(plan(Direction.READ, 3), buffer, TransferListener.NONE));
                  firstMayEnd.set(true);
                }));
    first.join();
    assertThat(outer.commands()).isEqualTo(2);
    assertThat(inner).singleElement().extracting(TransferReport::commands).isEqualTo(3L);
  }

  @Test
  void aTransferInTheMiddleOfOneOnTheSameQueuesIsRefused() {
    script.add(c -> 0);
    script.endWhen(firstMayEnd::get);
    List<Throwable> refused = new ArrayList<>();
    initiator.run(
        plan(Direction.READ, 64),
        buffer,
        once(
            () -> {
              try {
                initiator.run(plan(Direction.READ, 64), buffer, TransferListener.NONE);
              } catch (InvalidRequestException e) {
                refused.add(e);
              }
              firstMayEnd.set(true);
            }));
    assertThat(refused).singleElement().asString().contains("a transfer of this thread");
    assertThat(script.launches()).hasSize(1);
  }
}
