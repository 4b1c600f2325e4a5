package io.gpunvme.gpu.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.queue.TransferKernel;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.sim.DoorbellWindow;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** What {@link GpuInitiator} promises, whoever plays the GPU. */
abstract class GpuInitiatorContract extends InitiatorContract {
  private static final long MIB = 1 << 20;
  private static final int LARGE = 40 << 20;

  static Placement[] placements() {
    return Placement.values();
  }

  /** The kernel, closed by the initiator. */
  abstract TransferKernel loadKernel(Accelerator on);

  @Override
  final Initiator open(NvmeController on, Placement placement, int queues, int depth, int retries) {
    TransferKernel kernel = loadKernel(accelerator());
    return new GpuInitiator(on, accelerator(), kernel, placement, queues, depth, retries);
  }

  @Override
  final String name() {
    return "GPU";
  }

  @Override
  final DoorbellWindow window() {
    return DoorbellWindow.PEER;
  }

  /** A warp for each. */
  @Override
  final int threads(int queuePairs) {
    return queuePairs;
  }

  /** A kernel that is started before the reset is over fails, too. */
  @Override
  final int retriesOfAReset() {
    return 20;
  }

  @Override
  final Placement[] supported() {
    return placements();
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
        Initiator initiator = open(on, placement, 2, 4, 3);
        DeviceBuffer source = placement.allocate(accelerator(), LARGE + MIB);
        DeviceBuffer target = placement.allocate(accelerator(), LARGE + MIB)) {
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

  /** Each doorbell announces an eighth of the commands at most. */
  @ParameterizedTest
  @MethodSource("placements")
  final void noQueueTakesAllOfAFewCommands(Placement placement) {
    fill();
    DeviceBuffer target = buffer(placement);
    TransferPlan few =
        TransferPlan.of(
            Direction.READ, controller.namespace(1), BYTES / 16, List.of(new Extent(0, BLOCKS, 0)));
    try (Initiator initiator = open(placement, 8, 64, 0)) {
      TransferReport r = initiator.run(few, target, b -> {});

      assertArrived(target);
      assertThat(r.commands()).isEqualTo(16);
      assertThat(r.sqDoorbells()).isBetween(8L, 16L);
    }
  }

  @Test
  final void buffersOfTheOtherMemoryAreRefused() {
    TransferPlan read = plan(Direction.READ);
    try (Initiator host = open(Placement.HOST, 1, 8, 0);
        Initiator vram = open(Placement.VRAM_DATA, 1, 8, 0)) {
      assertThatThrownBy(() -> host.run(read, buffer(Placement.VRAM), b -> {}))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("pinned host memory");
      assertThatThrownBy(() -> vram.run(read, buffer(Placement.HOST), b -> {}))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("GPU memory");
    }
  }

  /** Joined, beside a long one, with what goes wrong: each reads its own bytes, or writes them. */
  @ParameterizedTest
  @CsvSource({
    "none",
    "status=0/82 on read p=0.02",
    "status=0/82 on write p=0.05",
    "drop on read p=0.0005",
    "late=300ms on read p=0.0005",
    "duplicate on read every=7",
    "reorder=3 on read every=3",
    "wrong-cid=4096 on read p=0.0005",
    "torn=50us on read every=5"
  })
  final void shortTransfersOfManyThreadsMoveTheirOwnBytes(String fault) throws Exception {
    fill();
    if (!fault.equals("none")) {
      device.faults().add(fault);
    }
    List<Throwable> failures = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    try (Initiator initiator = open(Placement.VRAM_DATA, 2, 16, 20)) {
      for (int t = 0; t < 6; t++) {
        DeviceBuffer own = buffer(Placement.VRAM_DATA, 64 << 10);
        int seed = t;
        threads.add(
            Thread.ofPlatform()
                .start(
                    () -> {
                      try {
                        moveShortOnes(initiator, own, seed);
                      } catch (Throwable e) {
                        synchronized (failures) {
                          failures.add(e);
                        }
                      }
                    }));
      }
      DeviceBuffer target = buffer(Placement.VRAM_DATA);
      while (threads.stream().anyMatch(Thread::isAlive)) {
        read(initiator, target);
      }
      for (Thread thread : threads) {
        thread.join();
      }
    }
    assertThat(failures).as(fault).isEmpty();
  }

  /** Writes only what is there already, so that every reader knows what to expect. */
  private void moveShortOnes(Initiator initiator, DeviceBuffer own, int seed) {
    SplittableRandom random = new SplittableRandom(seed);
    byte[] arrived = new byte[(int) own.size()];
    for (int i = 0; i < 60; i++) {
      TransferPlan.Builder plan =
          TransferPlan.builder(
              i % 5 == 4 ? Direction.WRITE : Direction.READ, controller.namespace(1), 4096);
      byte[] expected = new byte[arrived.length];
      int at = 0;
      for (int n = random.nextInt(1, 9); n > 0; n--) {
        int blocks = random.nextInt(1, 9);
        int slba = random.nextInt(BLOCKS - blocks);
        plan.add(slba, blocks, at);
        System.arraycopy(data, slba * 512, expected, at, blocks * 512);
        at += blocks * 512;
      }
      own.copyFromHost(MemorySegment.ofArray(i % 5 == 4 ? expected : new byte[arrived.length]), 0);
      TransferReport report = initiator.run(plan.build(), own, TransferListener.NONE);
      own.copyToHost(0, MemorySegment.ofArray(arrived));
      assertThat(Arrays.mismatch(arrived, expected)).as("seed %d, %d", seed, i).isEqualTo(-1);
      assertThat(report.bytes()).isEqualTo(at);
    }
  }
}
