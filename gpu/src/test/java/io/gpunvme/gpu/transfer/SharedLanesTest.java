package io.gpunvme.gpu.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Several threads and one {@link CpuInitiator}. */
@Timeout(120)
class SharedLanesTest {
  private static final int BYTES = 4 << 20;
  private static final int BLOCKS = BYTES / 512;
  private static final int COMMAND = 16384;
  private static final int DEPTH = 8;

  private final CpuAccelerator cpu = CpuAccelerator.open();
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final byte[] data = new byte[BYTES];
  private final DeviceBuffer longTarget = cpu.allocate(BYTES);
  private final DeviceBuffer other = cpu.allocate(BYTES);
  private SimulatedController device;
  private NvmeController controller;

  /** A controller with so many I/O queue pairs. */
  private CpuInitiator open(int pairs, int used) {
    device =
        SimulatedController.create(
            SimConfig.builder()
                .namespace(NamespaceConfig.ram(BYTES, 512))
                .latencyNanos(0)
                .ioQueues(pairs)
                .build());
    new SplittableRandom(3).nextBytes(data);
    MemorySegment medium = device.mediaMemory(1).orElseThrow();
    MemorySegment.copy(MemorySegment.ofArray(data), 0, medium, 0, BYTES);
    controller = NvmeController.open(device, ControllerOptions.defaults());
    assertThat(controller.maxQueuePairs()).isEqualTo(pairs);
    return new CpuInitiator(controller, used, DEPTH, used, 3);
  }

  @AfterEach
  void close() {
    threads.shutdownNow();
    controller.close();
    longTarget.close();
    other.close();
    cpu.close();
    assertThat(device.internalError()).isNull();
  }

  private TransferPlan all() {
    return TransferPlan.of(
        Direction.READ, controller.namespace(1), COMMAND, List.of(new Extent(0, BLOCKS, 0)));
  }

  private TransferReport readBlock(CpuInitiator initiator, int block, DeviceBuffer target, int at) {
    TransferReport report =
        initiator.run(
            TransferPlan.of(
                Direction.READ, controller.namespace(1), 512, List.of(new Extent(block, 1, at))),
            target,
            TransferListener.NONE);
    assertThat(bytes(target, at, 512)).isEqualTo(bytes(block * 512, 512));
    return report;
  }

  /** The same without a report. */
  private long moveBlock(CpuInitiator initiator, int block, DeviceBuffer target, int at) {
    long retries =
        initiator.move(
            Direction.READ, controller.namespace(1), block, 1, target, at, TransferListener.NONE);
    assertThat(bytes(target, at, 512)).isEqualTo(bytes(block * 512, 512));
    return retries;
  }

  private byte[] bytes(int from, int length) {
    return Arrays.copyOfRange(data, from, from + length);
  }

  private static byte[] bytes(DeviceBuffer buffer, int at, int length) {
    byte[] copy = new byte[length];
    buffer.copyToHost(at, MemorySegment.ofArray(copy));
    return copy;
  }

  private static void awaitProgress(LongAdder moved) throws InterruptedException {
    while (moved.sum() == 0) {
      Thread.sleep(1);
    }
  }

  /** With queue pairs to spare, and with one that must be given back for it. */
  @ParameterizedTest
  @ValueSource(ints = {8, 1})
  void aShortTransferPassesALongOne(int pairs) throws Exception {
    try (CpuInitiator initiator = open(pairs, 1)) {
      device.faults().add("delay=10ms on read");
      LongAdder moved = new LongAdder();
      Future<TransferReport> running =
          threads.submit(() -> initiator.run(all(), longTarget, moved::add));
      awaitProgress(moved);
      for (int i = 0; i < 3; i++) {
        TransferReport report = readBlock(initiator, 77 + i, other, 512 * i);
        assertThat(moved.sum()).as("the long one goes on").isLessThan(BYTES);
        assertThat(report.queuePairs()).isEqualTo(1);
        assertThat(report.threads()).isEqualTo(1);
        assertThat(report.latency().getTotalCount()).isEqualTo(1);
      }
      assertThat(running.get().bytes()).isEqualTo(BYTES);
      assertThat(bytes(longTarget, 0, BYTES)).isEqualTo(data);
    }
  }

  @Test
  void longTransfersTakeTurnsAtOneQueuePair() throws Exception {
    try (CpuInitiator initiator = open(1, 1)) {
      device.faults().add("delay=10ms on read");
      LongAdder first = new LongAdder();
      LongAdder second = new LongAdder();
      Future<Long> running =
          threads.submit(
              () -> {
                initiator.run(all(), longTarget, first::add);
                return second.sum();
              });
      awaitProgress(first);
      initiator.run(all(), other, second::add);
      // Turn by turn: the second has nearly as much as the first when that one ends, unless this
      // thread was slow to begin.
      assertThat(running.get()).isGreaterThan(BYTES / 16);
      assertThat(bytes(longTarget, 0, BYTES)).isEqualTo(data);
      assertThat(bytes(other, 0, BYTES)).isEqualTo(data);
    }
  }

  @Test
  void longTransfersShareSeveralQueuePairs() throws Exception {
    try (CpuInitiator initiator = open(8, 3)) {
      device.faults().add("delay=5ms on read");
      LongAdder first = new LongAdder();
      Future<TransferReport> running =
          threads.submit(() -> initiator.run(all(), longTarget, first::add));
      awaitProgress(first);
      TransferReport second = initiator.run(all(), other, TransferListener.NONE);
      assertThat(running.get().queuePairs()).isEqualTo(3);
      assertThat(second.queuePairs()).isBetween(1, 3);
      assertThat(second.commands()).isEqualTo(BYTES / COMMAND);
      assertThat(second.latency().getTotalCount()).isEqualTo(BYTES / COMMAND);
      assertThat(bytes(longTarget, 0, BYTES)).isEqualTo(data);
      assertThat(bytes(other, 0, BYTES)).isEqualTo(data);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3, 64})
  void manyThreadsReadWhatIsThere(int pairs) throws Exception {
    try (CpuInitiator initiator = open(pairs, Math.min(2, pairs))) {
      List<Future<?>> all = new ArrayList<>();
      for (int t = 0; t < 6; t++) {
        int me = t;
        all.add(
            threads.submit(
                () -> {
                  SplittableRandom random = new SplittableRandom(me);
                  try (DeviceBuffer own = cpu.allocate(BYTES)) {
                    for (int i = 0; i < 150; i++) {
                      if (i % 50 == me) {
                        initiator.run(all(), own, TransferListener.NONE);
                        assertThat(bytes(own, 0, BYTES)).isEqualTo(data);
                      } else if (random.nextBoolean()) {
                        readBlock(initiator, random.nextInt(BLOCKS), own, 4 * random.nextInt(999));
                      } else {
                        moveBlock(initiator, random.nextInt(BLOCKS), own, 4 * random.nextInt(999));
                      }
                    }
                  }
                  return null;
                }));
      }
      for (Future<?> one : all) {
        one.get();
      }
    }
  }

  /** A lane is used again and again: nothing of a transfer is left for the next one. */
  @Test
  void whatAShortTransferMetIsNotTheNextOnes() {
    try (CpuInitiator initiator = open(8, 1)) {
      device.faults().add("status=2/81 on read");
      assertThatThrownBy(() -> moveBlock(initiator, 9, other, 0))
          .isInstanceOfSatisfying(
              NvmeStatusException.class, e -> assertThat(e.slba()).isEqualTo(9));
      device.faults().clear();
      assertThat(moveBlock(initiator, 10, other, 0)).isZero();
      device.faults().add("status=0/82 on read nth=1");
      assertThat(moveBlock(initiator, 11, other, 512)).isEqualTo(1);
      device.faults().clear();
      assertThat(moveBlock(initiator, 12, other, 1024)).isZero();
      TransferListener failing =
          _ -> {
            throw new IllegalStateException("heard enough");
          };
      assertThatThrownBy(
              () ->
                  initiator.move(Direction.READ, controller.namespace(1), 0, 1, other, 0, failing))
          .hasMessage("heard enough");
      assertThat(moveBlock(initiator, 13, other, 0)).isZero();
      assertThat(readBlock(initiator, 14, other, 0).commands()).isEqualTo(1);
    }
  }

  @Test
  void aRunOfBlocksIsMovedByAsManyCommandsAsItTakes() {
    try (CpuInitiator initiator = open(8, 2)) {
      for (int blocks : new int[] {1, 8, 500, 513, BLOCKS}) {
        long retries =
            initiator.move(
                Direction.READ,
                controller.namespace(1),
                0,
                blocks,
                other,
                0,
                TransferListener.NONE);
        assertThat(retries).isZero();
        assertThat(bytes(other, 0, blocks * 512)).isEqualTo(bytes(0, blocks * 512));
      }
      assertThatThrownBy(() -> moveBlock(initiator, BLOCKS, other, 0))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("not inside the namespace");
      assertThatThrownBy(() -> moveBlock(initiator, 0, other, BYTES - 508))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("buffer of 4194304 bytes");
      assertThatThrownBy(() -> moveBlock(initiator, 0, other, 2))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("multiple of 4");
    }
  }

  /** A thread of an embedded controller serves each queue: four move the parts of one transfer. */
  @Test
  void aShortTransferIsCutForSeveralQueuePairs() {
    try (CpuInitiator initiator = open(64, 2)) {
      initiator.cutShortTransfers();
      // The long ones have 1 and 2.
      for (int qid = 3; qid <= 6; qid++) {
        device.faults().add("delay=1us on read qid=" + qid);
      }
      move(initiator, 64 << 10);
      assertThat(fired()).as("parts are not too short").containsExactly(2L, 2L, 0L, 0L);
      move(initiator, 256 << 10);
      assertThat(fired().stream().mapToLong(i -> i).sum()).isEqualTo(4 + 8);
      assertThat(fired()).doesNotContain(0L);
    }
  }

  /** Who does not ask for more gets as few commands as there can be. */
  @Test
  void otherwiseAShortTransferIsOneCommand() {
    try (CpuInitiator initiator = open(64, 2)) {
      device.faults().add("delay=1us on read");
      move(initiator, 64 << 10);
      assertThat(fired()).containsExactly(1L);
    }
  }

  private List<Long> fired() {
    return device.faults().rules().stream().map(device.faults()::fired).toList();
  }

  private void move(CpuInitiator initiator, int bytes) {
    initiator.move(
        Direction.READ, controller.namespace(1), 0, bytes / 512, other, 0, TransferListener.NONE);
    assertThat(bytes(other, 0, bytes)).isEqualTo(bytes(0, bytes));
  }

  private void moveBlocks(CpuInitiator initiator, int readers) throws Exception {
    device.faults().add("delay=50ms on read");
    List<Future<?>> all = new ArrayList<>();
    for (int i = 0; i < readers; i++) {
      all.add(threads.submit(() -> moveBlock(initiator, 7, other, 0)));
    }
    for (Future<?> one : all) {
      one.get();
    }
    device.faults().clear();
  }

  /** However many have lanes by then, most of them with one queue pair. */
  @Test
  void whoeverReadsAloneHasSeveralQueuePairs() throws Exception {
    try (CpuInitiator initiator = open(64, 2)) {
      initiator.cutShortTransfers();
      moveBlocks(initiator, 30);
      assertThat(controller.freeQueuePairs()).isEqualTo(64 - 2 - 4 * 4 - 12);
      for (int qid = 1; qid <= 64; qid++) {
        device.faults().add("delay=1us on read qid=" + qid);
      }
      for (int i = 0; i < 20; i++) {
        List<Long> before = fired();
        Thread reader = Thread.ofPlatform().start(() -> move(initiator, 256 << 10));
        reader.join();
        List<Long> after = fired();
        assertThat(IntStream.range(0, 64).filter(q -> after.get(q) > before.get(q)).count())
            .isEqualTo(4);
      }
    }
  }

  /** Who flushes needs no queue pair of somebody's. */
  @Test
  void oneQueuePairIsLeftHoweverManyThreadsThereAre() throws Exception {
    try (CpuInitiator initiator = open(12, 2)) {
      initiator.cutShortTransfers();
      moveBlocks(initiator, 24);
      assertThat(controller.freeQueuePairs()).isEqualTo(1);
    }
  }

  /** A listener that waits keeps the only lane busy. */
  private CompletableFuture<Void> hold(CpuInitiator initiator, CountDownLatch release)
      throws InterruptedException {
    CountDownLatch held = new CountDownLatch(1);
    CompletableFuture<Void> running =
        CompletableFuture.runAsync(
            () ->
                initiator.run(
                    all(),
                    longTarget,
                    moved -> {
                      held.countDown();
                      await(release);
                    }),
            threads);
    held.await();
    return running;
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void whoWaitsForALaneCanBeCancelledAndInterrupted() throws Exception {
    try (CpuInitiator initiator = open(1, 1)) {
      CountDownLatch release = new CountDownLatch(1);
      CompletableFuture<Void> running = hold(initiator, release);
      AtomicBoolean cancelled = new AtomicBoolean();
      TransferListener listener =
          new TransferListener() {
            @Override
            public void moved(long bytes) {}

            @Override
            public boolean isCancelled() {
              return cancelled.getAndSet(true);
            }
          };
      assertThatThrownBy(() -> initiator.run(all(), other, listener))
          .isInstanceOf(CommandAbortedException.class)
          .hasMessageContaining("cancelled");
      Thread.currentThread().interrupt();
      assertThatThrownBy(() -> initiator.run(all(), other, TransferListener.NONE))
          .isInstanceOf(CommandAbortedException.class)
          .hasMessageContaining("interrupt");
      assertThat(Thread.interrupted()).isTrue();
      release.countDown();
      running.get();
      readBlock(initiator, 5, other, 0);
    }
  }

  @Test
  void aQueuePairThatCannotBeMadeFailsItsTransferAndIsTriedAgain() throws Exception {
    try (CpuInitiator initiator = open(8, 1)) {
      device.faults().add("status=0/06 on create-cq nth=1");
      assertThatThrownBy(() -> readBlock(initiator, 5, other, 0))
          .isInstanceOf(NvmeStatusException.class);
      device.faults().clear();
      CountDownLatch release = new CountDownLatch(1);
      CompletableFuture<Void> running = hold(initiator, release);
      // The other lane is held: this one has a lane of its own.
      readBlock(initiator, 5, other, 0);
      release.countDown();
      running.get();
    }
  }

  @Test
  void closingWaitsForTransfersAndRefusesThoseThatWait() throws Exception {
    CpuInitiator initiator = open(1, 1);
    CountDownLatch release = new CountDownLatch(1);
    CompletableFuture<Void> running = hold(initiator, release);
    Future<TransferReport> waiting =
        threads.submit(() -> initiator.run(all(), other, TransferListener.NONE));
    Thread.sleep(20);
    Future<?> closing = threads.submit(initiator::close);
    assertThatThrownBy(waiting::get)
        .isInstanceOf(ExecutionException.class)
        .hasCauseInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed");
    assertThat(closing.isDone()).as("a transfer is under way").isFalse();
    release.countDown();
    closing.get();
    // What was under way has its lane until it ends, or learns that it gets no other.
    assertThat(running.handle((nothing, failure) -> true).get()).isTrue();
    initiator.close();
    assertThatThrownBy(() -> initiator.run(all(), other, TransferListener.NONE))
        .isInstanceOf(IllegalStateException.class);
  }
}
