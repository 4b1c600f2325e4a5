package io.gpunvme.gpu.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueueTraffic;
import io.gpunvme.nvme.driver.QueueTraffic.Counts;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.sim.DoorbellWindow;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.IntStream;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What {@link Initiator} promises, whoever it is. A class that implements it has a static method
 * {@code placements} besides, which JUnit calls.
 */
@Timeout(300)
abstract class InitiatorContract {
  static final int BYTES = 8 << 20;
  static final int BLOCKS = BYTES / 512;
  static final int COMMAND = 16384;

  final SimulatedController device =
      SimulatedController.create(
          SimConfig.builder()
              .namespace(NamespaceConfig.ram(BYTES, 512))
              .latencyNanos(0)
              .workers(1)
              .build());
  final NvmeController controller =
      NvmeController.open(
          device,
          ControllerOptions.builder()
              .allowWrite(true)
              .ioTimeout(Duration.ofMillis(250))
              .recoveryTimeout(Duration.ofMillis(250))
              .adminTimeout(Duration.ofMillis(1000))
              .build());
  final byte[] data = new byte[BYTES];
  private final List<AutoCloseable> open = new ArrayList<>();
  private Accelerator accelerator;

  /** The accelerator, closed after the test. */
  abstract Accelerator openAccelerator();

  abstract Initiator open(
      NvmeController on, Placement placement, int queues, int depth, int retries);

  /** The initiator's name. */
  abstract String name();

  /** The doorbells that it rings. */
  abstract DoorbellWindow window();

  /** With how many threads it drives so many queue pairs. */
  abstract int threads(int queuePairs);

  /** How many retries a command may need because of one reset. */
  abstract int retriesOfAReset();

  /** Where queues and data may be. */
  abstract Placement[] supported();

  final Accelerator accelerator() {
    return accelerator;
  }

  @BeforeEach
  final void begin() {
    accelerator = openAccelerator();
    new SplittableRandom(42).nextBytes(data);
  }

  @AfterEach
  final void close() throws Exception {
    for (AutoCloseable one : open.reversed()) {
      one.close();
    }
    controller.close();
    // Null where the test was skipped because there is none.
    if (accelerator != null) {
      accelerator.close();
    }
    assertThat(device.internalError()).isNull();
  }

  final Initiator open(Placement placement, int queues, int depth, int retries) {
    return open(controller, placement, queues, depth, retries);
  }

  final DeviceBuffer buffer(Placement placement) {
    return buffer(placement, BYTES);
  }

  /** Memory for data, closed after the test. */
  final DeviceBuffer buffer(Placement placement, long bytes) {
    DeviceBuffer buffer = placement.allocate(accelerator, bytes);
    open.add(buffer);
    return buffer;
  }

  final TransferPlan plan(Direction direction) {
    return TransferPlan.of(
        direction, controller.namespace(1), COMMAND, List.of(new Extent(0, BLOCKS, 0)));
  }

  /** Puts the data on the SSD without any help. */
  final void fill() {
    MemorySegment medium = device.mediaMemory(1).orElseThrow();
    MemorySegment.copy(MemorySegment.ofArray(data), 0, medium, 0, BYTES);
  }

  /** A long transfer, a short one, one that is repeated: those who watch see each once. */
  @ParameterizedTest
  @MethodSource("placements")
  final void whoWatchesSeesWhatWasMoved(Placement placement) {
    fill();
    device.faults().add("status=generic/namespace-not-ready on read nth=3");
    TransferPlan few =
        TransferPlan.of(
            Direction.WRITE, controller.namespace(1), COMMAND, List.of(new Extent(0, 40, 0)));
    try (Initiator initiator = open(placement, 2, 8, 3)) {
      DeviceBuffer buffer = buffer(placement);
      TransferReport read = initiator.run(plan(Direction.READ), buffer, b -> {});
      TransferReport written = initiator.run(few, buffer, b -> {});

      List<Counts> all = controller.traffic().queues().stream().map(QueueTraffic::counts).toList();
      assertThat(all.stream().mapToLong(Counts::readBytes).sum()).isEqualTo(BYTES);
      assertThat(all.stream().mapToLong(Counts::writtenBytes).sum()).isEqualTo(40 * 512);
      long commands = read.commands() + written.commands();
      assertThat(all.stream().mapToLong(Counts::submitted).sum()).isEqualTo(commands);
      assertThat(all.stream().mapToLong(Counts::completed).sum()).isEqualTo(commands);
      assertThat(all.stream().mapToLong(Counts::latencies).sum()).isBetween(commands - 1, commands);
      assertThat(all.stream().mapToLong(Counts::latencyNanos).sum()).isPositive();
      assertThat(all.stream().mapToLong(Counts::retries).sum()).isEqualTo(read.retries());
      assertThat(read.retries()).isEqualTo(1);
      assertThat(all).allMatch(c -> c.outstanding() == 0);
    }
    assertThat(controller.traffic().queues()).allMatch(QueueTraffic::isClosed);
  }

  final void read(Initiator initiator, DeviceBuffer target) {
    initiator.run(plan(Direction.READ), target, b -> {});
    assertArrived(target);
  }

  final void assertArrived(DeviceBuffer target) {
    byte[] bytes = new byte[BYTES];
    target.copyToHost(0, MemorySegment.ofArray(bytes));
    assertThat(bytes).isEqualTo(data);
  }

  @ParameterizedTest
  @MethodSource("placements")
  final void writesAndReadsAndReportsWhatItDid(Placement placement) {
    DeviceBuffer source = buffer(placement);
    DeviceBuffer target = buffer(placement);
    source.copyFromHost(MemorySegment.ofArray(data), 0);
    try (Initiator initiator = open(placement, 3, 16, 3)) {
      LongAdder moved = new LongAdder();
      TransferReport w = initiator.run(plan(Direction.WRITE), source, moved::add);
      TransferReport r = initiator.run(plan(Direction.READ), target, moved::add);

      assertArrived(target);
      assertThat(moved.sum()).isEqualTo(2L * BYTES);
      assertThat(w.bytes()).isEqualTo(BYTES);
      assertThat(r.commands()).isEqualTo(BYTES / COMMAND);
      assertThat(r.sqDoorbells()).isBetween(1L, r.commands());
      assertThat(r.cqDoorbells()).isBetween(1L, r.commands());
      assertThat(r.latency().getTotalCount()).isEqualTo(r.commands());
      assertThat(r.latencyNanos(50)).isPositive().isLessThanOrEqualTo(r.nanos());
      assertThat(r.path()).isEqualTo("direct");
      assertThat(r.initiator()).isEqualTo(name());
      assertThat(r.placement()).isEqualTo(placement);
      assertThat(r.queuePairs()).isEqualTo(3);
      assertThat(r.depth()).isEqualTo(16);
      assertThat(r.threads()).isEqualTo(threads(3));
      assertThat(r.retries()).isZero();
      assertThat(r.recoveries()).isZero();
      assertThat(r.gigabytesPerSecond()).isPositive();
      for (DoorbellWindow window : DoorbellWindow.values()) {
        assertThat(device.stats().ioCommands(window))
            .as("commands by doorbells of window %s", window)
            .isEqualTo(window == window() ? 2 * BYTES / COMMAND : 0);
      }
    }
  }

  /** Commands around the sizes at which PRP1, PRP2 and lists come in, anywhere in pages. */
  @ParameterizedTest
  @MethodSource("placements")
  final void anyPieceOfTheBufferCanBeTheData(Placement placement) {
    fill();
    DeviceBuffer target = buffer(placement);
    SplittableRandom random = new SplittableRandom(7);
    List<Extent> extents = new ArrayList<>();
    byte[] expected = new byte[BYTES];
    long at = 0;
    while (true) {
      int blocks = random.nextInt(1, 40);
      long offset = at + 4L * random.nextInt(300);
      if (offset + blocks * 512L > BYTES) {
        break;
      }
      long slba = random.nextLong(BLOCKS - blocks);
      extents.add(new Extent(slba, blocks, offset));
      System.arraycopy(data, (int) slba * 512, expected, (int) offset, blocks * 512);
      at = offset + blocks * 512L;
    }
    TransferPlan plan = TransferPlan.of(Direction.READ, controller.namespace(1), 1 << 20, extents);
    try (Initiator initiator = open(placement, 2, 32, 3)) {
      initiator.run(plan, target, b -> {});
    }
    byte[] arrived = new byte[BYTES];
    target.copyToHost(0, MemorySegment.ofArray(arrived));
    assertThat(arrived).as("seed 7").isEqualTo(expected);
  }

  /** A short plan, and one that is too long to stay in pinned memory of a GPU; retries, too. */
  @ParameterizedTest
  @MethodSource("placements")
  final void commandsOfOnePlanReadToManyBuffers(Placement placement) {
    fill();
    device.faults().add("status=0/82 on read p=0.02");
    for (int commands : new int[] {60, 3000}) {
      List<DeviceBuffer> buffers = new ArrayList<>();
      for (int i = 0; i < 7; i++) {
        buffers.add(buffer(placement));
      }
      SplittableRandom random = new SplittableRandom(commands);
      TransferPlan.Builder builder =
          TransferPlan.builder(Direction.READ, controller.namespace(1), COMMAND);
      byte[][] expected = new byte[buffers.size()][BYTES];
      int[] ends = new int[buffers.size()];
      for (int i = 0; i < commands; i++) {
        int blocks = random.nextInt(1, 5);
        int slba = random.nextInt(BLOCKS - blocks);
        int b = random.nextInt(1, buffers.size());
        if (ends[b] + blocks * 512 <= BYTES) {
          builder.add(slba, blocks, b, ends[b]);
          System.arraycopy(data, slba * 512, expected[b], ends[b], blocks * 512);
          ends[b] += blocks * 512;
        }
      }
      TransferPlan plan = builder.build();
      assertThat(plan.buffers()).isEqualTo(7);
      try (Initiator initiator = open(placement, 2, 32, 20)) {
        assertThat(initiator.run(plan, buffers, b -> {}).bytes()).isEqualTo(plan.bytes());
        assertThatThrownBy(() -> initiator.run(plan, buffers.subList(0, 6), b -> {}))
            .isInstanceOf(InvalidRequestException.class)
            .hasMessageContaining("7 buffers, but got 6");
        List<DeviceBuffer> oneTooSmall = new ArrayList<>(buffers);
        oneTooSmall.set(6, buffer(placement, 4096));
        assertThatThrownBy(() -> initiator.run(plan, oneTooSmall, b -> {}))
            .isInstanceOf(InvalidRequestException.class)
            .hasMessageContaining("of a buffer of 4096 bytes");
      }
      for (int b = 0; b < buffers.size(); b++) {
        byte[] arrived = new byte[BYTES];
        buffers.get(b).copyToHost(0, MemorySegment.ofArray(arrived));
        assertThat(arrived)
            .as("buffer %d of a plan of %d commands", b, commands)
            .isEqualTo(expected[b]);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("placements")
  final void theLongestCommandsWork(Placement placement) {
    fill();
    DeviceBuffer target = buffer(placement);
    try (Initiator initiator = open(placement, 1, 4, 3)) {
      TransferPlan plan =
          TransferPlan.of(
              Direction.READ,
              controller.namespace(1),
              initiator.maxTransferBytes(),
              List.of(new Extent(0, BLOCKS, 0)));
      assertThat(plan.bytes(0)).isGreaterThan(64 << 10);
      initiator.run(plan, target, b -> {});
      assertArrived(target);
    }
  }

  @ParameterizedTest
  @MethodSource("placements")
  final void aRetryableErrorIsRepeatedAndAFinalOneIsThrown(Placement placement) {
    fill();
    DeviceBuffer target = buffer(placement);
    try (Initiator initiator = open(placement, 2, 8, 2)) {
      device.faults().add("status=media/unrecovered-read-error on read lba=100 count=2");
      TransferReport report = initiator.run(plan(Direction.READ), target, b -> {});
      assertThat(report.retries()).isEqualTo(2);
      assertThat(report.commands()).isEqualTo(BYTES / COMMAND + 2);
      assertArrived(target);

      device.faults().clear();
      device.faults().add("status=media/unrecovered-read-error dnr on read lba=100");
      assertThatThrownBy(() -> initiator.run(plan(Direction.READ), target, b -> {}))
          .isInstanceOfSatisfying(
              NvmeStatusException.class,
              e -> {
                assertThat(StatusCode.of(e.status())).isEqualTo(StatusCode.UNRECOVERED_READ_ERROR);
                assertThat(e.retryable()).isFalse();
                assertThat(e.slba()).isEqualTo(96);
                assertThat(e.opcode()).isEqualTo(IoOpcode.READ);
                assertThat(e.qid()).isPositive();
                assertThat(e.cid()).isLessThan(0xFFFF);
              });
      device.faults().clear();
      read(initiator, target);
    }
  }

  /**
   * Each once; afterwards every byte is there, and again without the fault. The wrong CIDs name a
   * generation of a slot that is not in flight (a slot number has 3 bits here): a completion that
   * names another command in flight is a lie that no host can see through, see docs/faults.md.
   */
  @ParameterizedTest
  @CsvSource({
    "drop on read lba=4000 count=1,                 true",
    "drop skip on read lba=4000 count=1,            true",
    "late=600ms on read lba=4000 count=1,           false",
    "duplicate on read every=7,                     false",
    "wrong-cid=8 on read lba=4000 count=1,          true",
    "wrong-cid=4096 on read lba=4000 count=1,       true",
    "torn=50us on read every=5,                     false",
    "reorder=3 on read every=3,                     false",
    "stall=600ms on read nth=100,                   false",
    "delay=1ms on read every=9,                     false",
    "cfs on read nth=100,                           true",
  })
  final void faultsCostTimeAndNothingElse(String fault, boolean recovers) {
    for (Placement placement : supported()) {
      fill();
      DeviceBuffer target = buffer(placement);
      try (Initiator initiator = open(placement, 2, 8, 5)) {
        device.faults().add(fault);
        TransferReport report = initiator.run(plan(Direction.READ), target, b -> {});
        assertThat(report.recoveries() > 0 || !recovers).as(placement + ": " + fault).isTrue();
        assertArrived(target);
        device.faults().clear();
        read(initiator, target);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("placements")
  final void aCommandThatNeverCompletesIsATimeout(Placement placement) {
    fill();
    DeviceBuffer target = buffer(placement);
    try (Initiator initiator = open(placement, 1, 8, 1)) {
      device.faults().add("drop on read lba=4000");
      assertThatThrownBy(() -> initiator.run(plan(Direction.READ), target, b -> {}))
          .isInstanceOf(NvmeTimeoutException.class)
          .hasMessageContaining("Read at LBA 4000")
          .hasMessageContaining("250 ms, 2 times");
      device.faults().clear();
      read(initiator, target);
    }
  }

  @Test
  final void aControllerThatAnswersNothingEndsInATimeout() {
    DeviceBuffer target = buffer(Placement.HOST);
    try (Initiator initiator = open(Placement.HOST, 1, 4, 1)) {
      device.faults().add("drop on read");
      assertThatThrownBy(() -> initiator.run(plan(Direction.READ), target, b -> {}))
          .isInstanceOf(NvmeTimeoutException.class);
      device.faults().clear();
      fill();
      read(initiator, target);
    }
  }

  @ParameterizedTest
  @MethodSource("placements")
  final void aDeviceThatDisappearsIsATypedErrorAndNothingHangs(Placement placement) {
    DeviceBuffer target = buffer(placement);
    Initiator initiator = open(placement, 2, 8, 3);
    device.faults().add("gone on read after=50");
    assertThatThrownBy(() -> initiator.run(plan(Direction.READ), target, b -> {}))
        .isInstanceOf(DeviceGoneException.class);
    assertThatThrownBy(() -> initiator.run(plan(Direction.READ), target, b -> {}))
        .isInstanceOf(NvmeException.class);
    controller.close();
    initiator.close();
  }

  @Test
  final void aVanishedDeviceIsNoticedLongBeforeTheTimeout() {
    SimulatedController slow =
        SimulatedController.create(
            SimConfig.builder().namespace(NamespaceConfig.ram(BYTES, 512)).build());
    NvmeController patient =
        NvmeController.open(
            slow, ControllerOptions.builder().ioTimeout(Duration.ofMinutes(10)).build());
    DeviceBuffer target = accelerator.allocatePinned(BYTES);
    Initiator initiator = open(patient, Placement.HOST, 1, 8, 3);
    slow.faults().add("gone on read after=20");
    TransferPlan plan =
        TransferPlan.of(
            Direction.READ, patient.namespace(1), 4096, List.of(new Extent(0, BLOCKS, 0)));
    assertThatThrownBy(() -> initiator.run(plan, target, b -> {}))
        .isInstanceOf(DeviceGoneException.class);
    target.close();
    patient.close();
    initiator.close();
  }

  @ParameterizedTest
  @MethodSource("placements")
  final void aResetByAnotherThreadOnlyDelaysTheTransfer(Placement placement)
      throws InterruptedException {
    fill();
    DeviceBuffer target = buffer(placement);
    try (Initiator initiator = open(placement, 2, 8, retriesOfAReset())) {
      Thread resetter = Thread.ofPlatform().start(controller::reset);
      for (int i = 0; i < 20; i++) {
        initiator.run(plan(Direction.READ), target, b -> {});
      }
      resetter.join();
      read(initiator, target);
    }
  }

  @Test
  final void anInterruptCancelsTheTransfer() {
    DeviceBuffer target = buffer(Placement.HOST);
    try (Initiator initiator = open(Placement.HOST, 1, 8, 3)) {
      device.faults().add("delay=5ms on read");
      Thread.currentThread().interrupt();
      assertThatThrownBy(() -> initiator.run(plan(Direction.READ), target, b -> {}))
          .isInstanceOf(NvmeException.class)
          .hasMessageContaining("cancelled");
      assertThat(Thread.interrupted()).isTrue();
      device.faults().clear();
      fill();
      read(initiator, target);
    }
  }

  @Test
  final void aListenerThatThrowsEndsTheTransferWithNothingOutstanding() {
    DeviceBuffer target = buffer(Placement.HOST);
    try (Initiator initiator = open(Placement.HOST, 2, 8, 3)) {
      assertThatThrownBy(
              () ->
                  initiator.run(
                      plan(Direction.READ),
                      target,
                      b -> {
                        throw new IllegalStateException("listener");
                      }))
          .hasMessage("listener");
      fill();
      read(initiator, target);
    }
  }

  @Test
  final void impossibleShapesAndBuffersAreRefused() {
    TransferPlan read = plan(Direction.READ);
    assertThatThrownBy(() -> open(Placement.HOST, 65, 8, 0))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("queue pairs 65 is outside 1..64");
    assertThatThrownBy(() -> open(Placement.HOST, 1, 1 << 20, 0))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("depth 1048576");
    assertThatThrownBy(() -> open(Placement.HOST, 1, 8, 101))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("retries");
    try (Initiator initiator = open(Placement.HOST, 1, 8, 0)) {
      DeviceBuffer small = buffer(Placement.HOST, 4096);
      assertThatThrownBy(() -> initiator.run(read, small, b -> {}))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("4096");
    }
  }

  /** A short transfer, and long ones; whoever is told of a command knows which one it was. */
  @ParameterizedTest
  @MethodSource("placements")
  final void oneTransferReadsAndWrites(Placement placement) {
    device.faults().add("status=0/82 on read p=0.02");
    device.faults().add("status=0/82 on write p=0.02");
    for (int commands : new int[] {7, 600, 3000}) {
      fill();
      byte[] expectedMedium = data.clone();
      byte[] source = new byte[BYTES];
      byte[] expectedBuffer = new byte[BYTES];
      SplittableRandom random = new SplittableRandom(commands);
      random.nextBytes(source);
      System.arraycopy(source, 0, expectedBuffer, 0, BYTES);
      TransferPlan.Builder plan =
          TransferPlan.builder(Direction.READ, controller.namespace(1), COMMAND);
      List<Integer> places = new ArrayList<>(IntStream.range(0, commands).boxed().toList());
      Collections.shuffle(places, new Random(commands));
      for (int i = 0; i < commands; i++) {
        int slba = places.get(i) * 4;
        int at = i * 2048;
        if (i % 3 == 0) {
          plan.add(Direction.WRITE, slba, 4, 0, at);
          System.arraycopy(source, at, expectedMedium, slba * 512, 2048);
        } else {
          plan.add(slba, 4, at);
          System.arraycopy(data, slba * 512, expectedBuffer, at, 2048);
        }
      }
      DeviceBuffer buffer = buffer(placement);
      buffer.copyFromHost(MemorySegment.ofArray(source), 0);
      AtomicLongArray seen = new AtomicLongArray(commands);
      try (Initiator initiator = open(placement, 2, 32, 20)) {
        TransferReport report = initiator.run(plan.build(), buffer, latenciesTo(seen));
        assertThat(report.bytes()).isEqualTo(commands * 2048L);
        assertThat(report.latency().getTotalCount()).isEqualTo(commands);
        Histogram told = TransferListener.newLatencies();
        for (int i = 0; i < commands; i++) {
          assertThat(seen.get(i)).as("command %d", i).isNotNegative();
          told.recordValue(seen.get(i));
        }
        assertThat(told).isEqualTo(report.latency());
      }
      byte[] arrived = new byte[BYTES];
      buffer.copyToHost(0, MemorySegment.ofArray(arrived));
      assertThat(arrived).as("%d commands", commands).isEqualTo(expectedBuffer);
      MemorySegment medium = device.mediaMemory(1).orElseThrow();
      assertThat(medium.asSlice(0, BYTES).toArray(ValueLayout.JAVA_BYTE))
          .as("%d commands", commands)
          .isEqualTo(expectedMedium);
    }
  }

  /** Keeps each command's latency; none is told twice. */
  private static TransferListener latenciesTo(AtomicLongArray seen) {
    for (int i = 0; i < seen.length(); i++) {
      seen.set(i, -1);
    }
    return new TransferListener() {
      @Override
      public void moved(long bytes) {}

      @Override
      public void completed(int command, long nanos) {
        if (!seen.compareAndSet(command, -1, nanos)) {
          throw new IllegalStateException("command " + command + " completed twice");
        }
      }
    };
  }

  @Test
  final void aControllerOpenedReadOnlyIsNotWritten() {
    SimulatedController other =
        SimulatedController.create(
            SimConfig.builder().namespace(NamespaceConfig.ram(BYTES, 512)).build());
    try (NvmeController readOnly = NvmeController.open(other, ControllerOptions.defaults());
        Initiator initiator = open(readOnly, Placement.HOST, 1, 8, 3)) {
      DeviceBuffer source = buffer(Placement.HOST);
      assertThatThrownBy(() -> initiator.run(plan(Direction.WRITE), source, b -> {}))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("--allow-write");
      TransferPlan.Builder oneWrite =
          TransferPlan.builder(Direction.READ, readOnly.namespace(1), COMMAND);
      oneWrite.add(0, 1, 0);
      oneWrite.add(Direction.WRITE, 1, 1, 0, 512);
      assertThatThrownBy(() -> initiator.run(oneWrite.build(), source, b -> {}))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("--allow-write");
    }
  }

  @Test
  final void afterCloseItSaysSo() {
    Initiator initiator = open(Placement.HOST, 1, 8, 0);
    initiator.close();
    initiator.close();
    DeviceBuffer target = buffer(Placement.HOST);
    assertThatThrownBy(() -> initiator.run(plan(Direction.READ), target, b -> {}))
        .isInstanceOf(IllegalStateException.class);
  }
}
