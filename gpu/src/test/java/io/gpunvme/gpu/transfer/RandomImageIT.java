package io.gpunvme.gpu.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.sim.FaultPlan;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A whole 1 GiB image written and read through the driver in random order, sizes and queues, while
 * the controller completes out of order and one command in a hundred fails in a way that allows a
 * retry.
 */
class RandomImageIT {
  private static final long IMAGE = 1L << 30;
  private static final int BLOCK = 512;
  private static final int QUEUES = 8;
  private static final int DEPTH = 32;
  private static final int THREADS = 4;
  private static final int LONGEST_EXTENT_BLOCKS = 3000;

  @TempDir Path folder;

  @Test
  void whatWasWrittenIsReadAndIsInTheFile() throws IOException {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    System.out.println("RandomImageIT seed " + seed);
    Path image = folder.resolve("image");
    SimConfig config =
        SimConfig.builder()
            .namespace(NamespaceConfig.file(image, IMAGE, BLOCK))
            .latencyNanos(20_000)
            .workers(2)
            .outOfOrder(true)
            .seed(seed)
            .build();
    SimulatedController device = SimulatedController.create(config);
    FaultPlan faults = device.faults();
    faults.add("status=generic/namespace-not-ready on write p=0.01");
    faults.add("status=generic/namespace-not-ready on read p=0.01");
    ControllerOptions options = ControllerOptions.builder().allowWrite(true).build();
    try (Arena arena = Arena.ofConfined();
        CpuAccelerator cpu = CpuAccelerator.open();
        NvmeController controller = NvmeController.open(device, options);
        CpuInitiator initiator = new CpuInitiator(controller, QUEUES, DEPTH, THREADS, 10);
        DeviceBuffer source = cpu.allocate(IMAGE);
        DeviceBuffer target = cpu.allocate(IMAGE)) {
      MemorySegment expected = randomBytes(arena, seed);
      source.copyFromHost(expected, 0);
      Namespace ns = controller.namespace(1);

      TransferReport written =
          initiator.run(shuffled(Direction.WRITE, controller, ns, seed), source, b -> {});
      TransferReport read =
          initiator.run(shuffled(Direction.READ, controller, ns, ~seed), target, b -> {});

      assertThat(written.bytes()).as("seed %d", seed).isEqualTo(IMAGE);
      assertThat(read.bytes()).as("seed %d", seed).isEqualTo(IMAGE);
      assertThat(written.retries()).as("the faults must have struck").isPositive();
      assertThat(read.retries()).as("the faults must have struck").isPositive();
      // Not with the buffer that was written from: the transfers had that, too.
      assertThat(target.segment().mismatch(expected)).as("read back, seed %d", seed).isEqualTo(-1);
      try (FileChannel file = FileChannel.open(image)) {
        MemorySegment bytes = file.map(MapMode.READ_ONLY, 0, file.size(), arena);
        assertThat(bytes.mismatch(expected)).as("image file, seed %d", seed).isEqualTo(-1);
      }
    }
  }

  private static MemorySegment randomBytes(Arena arena, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    MemorySegment bytes = arena.allocate(IMAGE, 8);
    for (long i = 0; i < IMAGE; i += 8) {
      bytes.set(ValueLayout.JAVA_LONG, i, random.nextLong());
    }
    return bytes;
  }

  /** Extents of random length that cover the namespace once, in random order. */
  private static TransferPlan shuffled(
      Direction direction, NvmeController controller, Namespace ns, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    List<Extent> extents = new ArrayList<>();
    for (long at = 0; at < ns.blocks(); ) {
      long blocks = Math.min(ns.blocks() - at, 1 + random.nextInt(LONGEST_EXTENT_BLOCKS));
      extents.add(new Extent(at, blocks, at * BLOCK));
      at += blocks;
    }
    for (int i = extents.size() - 1; i > 0; i--) {
      Extent e = extents.get(i);
      extents.set(i, extents.set(random.nextInt(i + 1), e));
    }
    return TransferPlan.of(direction, ns, controller.maxTransferBytes(), extents);
  }
}
