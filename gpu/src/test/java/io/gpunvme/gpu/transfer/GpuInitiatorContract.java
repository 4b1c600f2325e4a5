package io.gpunvme.gpu.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.queue.TransferKernel;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.sim.DoorbellWindow;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** What {@link GpuInitiator} promises, whoever plays the GPU. */
@Timeout(300)
abstract class GpuInitiatorContract {
  private static final int BYTES = 8 << 20;
  private static final int BLOCKS = BYTES / 512;
  private static final int COMMAND = 16384;
  private static final long MIB = 1 << 20;
  private static final int LARGE = 40 << 20;

  private final SimulatedController device =
      SimulatedController.create(
          SimConfig.builder()
              .namespace(NamespaceConfig.ram(BYTES, 512))
              .latencyNanos(0)
              .workers(1)
              .build());
  private final NvmeController controller =
      NvmeController.open(
          device,
          ControllerOptions.builder()
              .allowWrite(true)
              .ioTimeout(Duration.ofMillis(250))
              .recoveryTimeout(Duration.ofMillis(250))
              .adminTimeout(Duration.ofMillis(1000))
              .build());
  private final byte[] data = new byte[BYTES];
  private final List<AutoCloseable> open = new ArrayList<>();
  private Accelerator accelerator;

  /** The accelerator, closed after the test. */
  abstract Accelerator openAccelerator();

  /** The kernel, closed by the initiator. */
  abstract TransferKernel loadKernel(Accelerator on);

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

  private GpuInitiator open(Placement placement, int queues, int depth, int retries) {
    return open(controller, placement, queues, depth, retries);
  }

  private GpuInitiator open(
      NvmeController on, Placement placement, int queues, int depth, int retries) {
    TransferKernel kernel = loadKernel(accelerator);
    return new GpuInitiator(on, accelerator, kernel, placement, queues, depth, retries);
  }

  private DeviceBuffer buffer(Placement placement) {
    DeviceBuffer buffer = placement.allocate(accelerator, BYTES);
    open.add(buffer);
    return buffer;
  }

  private TransferPlan plan(Direction direction) {
    return TransferPlan.of(
        direction, controller.namespace(1), COMMAND, List.of(new Extent(0, BLOCKS, 0)));
  }

  /** Puts the data on the SSD without any help. */
  private void fill() {
    MemorySegment medium = device.mediaMemory(1).orElseThrow();
    MemorySegment.copy(MemorySegment.ofArray(data), 0, medium, 0, BYTES);
  }

  private void read(GpuInitiator initiator, DeviceBuffer target) {
    initiator.run(plan(Direction.READ), target, b -> {});
    assertArrived(target);
  }

  private void assertArrived(DeviceBuffer target) {
    byte[] bytes = new byte[BYTES];
    target.copyToHost(0, MemorySegment.ofArray(bytes));
    assertThat(bytes).isEqualTo(data);
  }

  @ParameterizedTest
  @EnumSource
  final void writesAndReadsAndReportsWhatItDid(Placement placement) {
    DeviceBuffer source = buffer(placement);
    DeviceBuffer target = buffer(placement);
    source.copyFromHost(MemorySegment.ofArray(data), 0);
    try (GpuInitiator initiator = open(placement, 3, 16, 3)) {
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
      assertThat(r.initiator()).isEqualTo("GPU");
      assertThat(r.placement()).isEqualTo(placement);
      assertThat(r.queuePairs()).isEqualTo(3);
      assertThat(r.depth()).isEqualTo(16);
      assertThat(r.threads()).isEqualTo(3);
      assertThat(r.retries()).isZero();
      assertThat(r.recoveries()).isZero();
      assertThat(device.stats().ioCommands(DoorbellWindow.CPU)).isZero();
      assertThat(device.stats().ioCommands(DoorbellWindow.PEER)).isEqualTo(2 * BYTES / COMMAND);
    }
  }

  /** Commands around the sizes at which PRP1, PRP2 and lists come in, anywhere in pages. */
  @ParameterizedTest
  @EnumSource
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
    try (GpuInitiator initiator = open(placement, 2, 32, 3)) {
      initiator.run(plan, target, b -> {});
    }
    byte[] arrived = new byte[BYTES];
    target.copyToHost(0, MemorySegment.ofArray(arrived));
    assertThat(arrived).as("seed 7").isEqualTo(expected);
  }

  /** A short plan, and one that is too long to stay in pinned memory; retries, too. */
  @ParameterizedTest
  @EnumSource
  final void oneKernelReadsToManyBuffers(Placement placement) {
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
      try (GpuInitiator initiator = open(placement, 2, 32, 20)) {
        assertThat(initiator.run(plan, buffers, b -> {}).bytes()).isEqualTo(plan.bytes());
        assertThatThrownBy(() -> initiator.run(plan, buffers.subList(0, 6), b -> {}))
            .isInstanceOf(InvalidRequestException.class)
            .hasMessageContaining("7 buffers, but got 6");
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
  @EnumSource
  final void theLongestCommandsWork(Placement placement) {
    fill();
    DeviceBuffer target = buffer(placement);
    try (GpuInitiator initiator = open(placement, 1, 4, 3)) {
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

  /** MDTS, the option, the 65536 blocks of NLB: each is the limit once. */
  @ParameterizedTest
  @CsvSource({
    "HOST,       8,  1024, 8",
    "HOST,       0,  16,   16",
    "HOST,       0,  64,   32",
    "VRAM_DATA,  8,  1024, 8",
    "VRAM_DATA,  0,  16,   16",
    "VRAM,       0,  64,   32"
  })
  final void commandsOfMegabytesMoveEveryByte(Placement placement, int mdts, int option, int most) {
    SimulatedController large =
        SimulatedController.create(
            SimConfig.builder()
                .namespace(NamespaceConfig.ram(LARGE, 512))
                .maxTransfer(mdts * MIB)
                .latencyNanos(0)
                .build());
    ControllerOptions options =
        ControllerOptions.builder().allowWrite(true).maxTransferBytes(option * MIB).build();
    try (NvmeController on = NvmeController.open(large, options);
        GpuInitiator initiator = open(on, placement, 2, 4, 3);
        DeviceBuffer source = placement.allocate(accelerator, LARGE + MIB);
        DeviceBuffer target = placement.allocate(accelerator, LARGE + MIB)) {
      byte[] from = new byte[LARGE + (int) MIB];
      byte[] to = new byte[from.length];
      SplittableRandom random = new SplittableRandom(most);
      random.nextBytes(from);
      source.copyFromHost(MemorySegment.ofArray(from), 0);
      target.copyFromHost(MemorySegment.ofArray(to), 0);
      List<Extent> writes = new ArrayList<>();
      List<Extent> reads = new ArrayList<>();
      long slba = 0;
      // The first is the longest possible; the others have 4 MiB and more.
      for (long blocks = most * MIB / 512; slba + blocks <= LARGE / 512; ) {
        long at = slba * 512 + 4 * random.nextLong(MIB / 4);
        writes.add(new Extent(slba, blocks, at));
        reads.add(new Extent(slba, blocks, slba * 512 + 12));
        System.arraycopy(from, (int) at, to, (int) slba * 512 + 12, (int) blocks * 512);
        slba += blocks;
        blocks = random.nextLong(4 * MIB / 512, Math.min(most, 8) * MIB / 512 + 1);
      }
      long limit = initiator.maxTransferBytes();
      TransferReport w =
          initiator.run(
              TransferPlan.of(Direction.WRITE, on.namespace(1), limit, writes), source, b -> {});
      TransferReport r =
          initiator.run(
              TransferPlan.of(Direction.READ, on.namespace(1), limit, reads), target, b -> {});

      byte[] arrived = new byte[to.length];
      target.copyToHost(0, MemorySegment.ofArray(arrived));
      assertThat(Arrays.mismatch(arrived, to)).isEqualTo(-1);
      assertThat(w.commands()).isEqualTo(writes.size());
      assertThat(r.commands()).isEqualTo(reads.size());
    }
    assertThat(large.internalError()).isNull();
  }

  @ParameterizedTest
  @EnumSource
  final void aRetryableErrorIsRepeatedAndAFinalOneIsThrown(Placement placement) {
    fill();
    DeviceBuffer target = buffer(placement);
    try (GpuInitiator initiator = open(placement, 2, 8, 2)) {
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

  /** Each once; afterwards every byte is there, and again without the fault. */
  @ParameterizedTest
  @CsvSource({
    "drop on read lba=4000 count=1,                 true",
    "drop skip on read lba=4000 count=1,            true",
    "late=600ms on read lba=4000 count=1,           false",
    "duplicate on read every=7,                     false",
    "wrong-cid=1 on read lba=4000 count=1,          true",
    "wrong-cid=4096 on read lba=4000 count=1,       true",
    "torn=50us on read every=5,                     false",
    "reorder=3 on read every=3,                     false",
    "stall=600ms on read nth=100,                   false",
    "delay=1ms on read every=9,                     false",
    "cfs on read nth=100,                           true",
  })
  final void faultsCostTimeAndNothingElse(String fault, boolean recovers) {
    for (Placement placement : Placement.values()) {
      fill();
      DeviceBuffer target = buffer(placement);
      try (GpuInitiator initiator = open(placement, 2, 8, 5)) {
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
  @EnumSource
  final void aCommandThatNeverCompletesIsATimeout(Placement placement) {
    fill();
    DeviceBuffer target = buffer(placement);
    try (GpuInitiator initiator = open(placement, 1, 8, 1)) {
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
    try (GpuInitiator initiator = open(Placement.HOST, 1, 4, 1)) {
      device.faults().add("drop on read");
      assertThatThrownBy(() -> initiator.run(plan(Direction.READ), target, b -> {}))
          .isInstanceOf(NvmeTimeoutException.class);
      device.faults().clear();
      fill();
      read(initiator, target);
    }
  }

  @ParameterizedTest
  @EnumSource
  final void aDeviceThatDisappearsIsATypedErrorAndNothingHangs(Placement placement) {
    DeviceBuffer target = buffer(placement);
    GpuInitiator initiator = open(placement, 2, 8, 3);
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
    GpuInitiator initiator = open(patient, Placement.HOST, 1, 8, 3);
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
  @EnumSource
  final void aResetByAnotherThreadOnlyDelaysTheTransfer(Placement placement)
      throws InterruptedException {
    fill();
    DeviceBuffer target = buffer(placement);
    try (GpuInitiator initiator = open(placement, 2, 8, 20)) {
      Thread resetter = Thread.ofPlatform().start(controller::reset);
      for (int i = 0; i < 5; i++) {
        initiator.run(plan(Direction.READ), target, b -> {});
      }
      resetter.join();
      read(initiator, target);
    }
  }

  @Test
  final void anInterruptCancelsTheTransfer() {
    DeviceBuffer target = buffer(Placement.HOST);
    try (GpuInitiator initiator = open(Placement.HOST, 1, 8, 3)) {
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
    try (GpuInitiator initiator = open(Placement.HOST, 2, 8, 3)) {
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
    try (GpuInitiator host = open(Placement.HOST, 1, 8, 0);
        GpuInitiator vram = open(Placement.VRAM_DATA, 1, 8, 0);
        DeviceBuffer small = accelerator.allocatePinned(4096)) {
      assertThatThrownBy(() -> host.run(read, small, b -> {}))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("4096");
      assertThatThrownBy(() -> host.run(read, buffer(Placement.VRAM), b -> {}))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("pinned host memory");
      assertThatThrownBy(() -> vram.run(read, buffer(Placement.HOST), b -> {}))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("GPU memory");
    }
  }

  @Test
  final void aControllerOpenedReadOnlyIsNotWritten() {
    SimulatedController other =
        SimulatedController.create(
            SimConfig.builder().namespace(NamespaceConfig.ram(BYTES, 512)).build());
    try (NvmeController readOnly = NvmeController.open(other, ControllerOptions.defaults());
        GpuInitiator initiator = open(readOnly, Placement.HOST, 1, 8, 3)) {
      DeviceBuffer source = buffer(Placement.HOST);
      assertThatThrownBy(() -> initiator.run(plan(Direction.WRITE), source, b -> {}))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("--allow-write");
    }
  }

  @Test
  final void afterCloseItSaysSo() {
    GpuInitiator initiator = open(Placement.HOST, 1, 8, 0);
    initiator.close();
    initiator.close();
    DeviceBuffer target = buffer(Placement.HOST);
    assertThatThrownBy(() -> initiator.run(plan(Direction.READ), target, b -> {}))
        .isInstanceOf(IllegalStateException.class);
  }
}
