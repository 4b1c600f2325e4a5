package io.gpunvme.gpu.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.cuda.Cuda;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The transfer kernel rings the doorbells of a real controller: on a GPU, or on the CPU by the
 * library that {@code GPUNVME_LIBCUDA} names.
 */
@Tag("qemu")
class RealTwinTest {
  private static final int BYTES = 8 << 20;
  private static final int QUEUES = 2;
  private static final int DEPTH = 32;

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());

  @Test
  @Timeout(300)
  void deviceCodeWritesAndReads() {
    String address = System.getProperty("gpunvme.device", "");
    assumeTrue(
        !address.isEmpty(), "no real controller: none is named by -Dgpunvme.device=vfio:ADDRESS");
    assumeTrue(Cuda.isAvailable(), "no GPU, and GPUNVME_LIBCUDA names no library in its place");
    ControllerOptions options = ControllerOptions.builder().allowWrite(true).build();
    try (Device device = Device.open(address, options);
        GpuAccelerator gpu = GpuAccelerator.open();
        DeviceBuffer buffer = gpu.allocatePinned(BYTES)) {
      NvmeController controller = device.controller();
      try (GpuInitiator kernel =
              GpuInitiator.open(controller, gpu, Placement.HOST, QUEUES, DEPTH, 0);
          CpuInitiator java = new CpuInitiator(controller, 1, DEPTH, 1, 0)) {
        // What one of them wrote, the other reads.
        exchange(kernel, java, controller, buffer, seed);
        exchange(java, kernel, controller, buffer, ~seed);
        exchange(kernel, kernel, controller, buffer, seed + 1);
      }
    }
  }

  private static void exchange(
      Initiator writer,
      Initiator reader,
      NvmeController controller,
      DeviceBuffer buffer,
      long contents) {
    SeededImage.fill(buffer.segment(), contents, 0, BYTES);
    TransferReport written =
        writer.run(plan(Direction.WRITE, controller, contents), buffer, b -> {});
    buffer.segment().fill((byte) 0x5A);
    TransferReport read = reader.run(plan(Direction.READ, controller, contents), buffer, b -> {});
    assertThat(written.bytes()).isEqualTo(BYTES);
    assertThat(read.bytes()).isEqualTo(BYTES);
    assertThat(SeededImage.mismatch(buffer.segment(), contents, 0, BYTES))
        .as("contents %d", contents)
        .isEqualTo(-1);
  }

  /** Pieces of random length that cover the first blocks once, in random order. */
  private static TransferPlan plan(Direction direction, NvmeController controller, long seed) {
    SplittableRandom random = new SplittableRandom(seed + direction.ordinal());
    Namespace ns = controller.namespaces().getFirst();
    int size = ns.blockSize();
    List<Extent> extents = new ArrayList<>();
    for (long at = 0; at < BYTES; ) {
      long blocks = Math.min((BYTES - at) / size, 1 + random.nextInt(200));
      extents.add(new Extent(at / size, blocks, at));
      at += blocks * size;
    }
    for (int i = extents.size() - 1; i > 0; i--) {
      Extent e = extents.get(i);
      extents.set(i, extents.set(random.nextInt(i + 1), e));
    }
    return TransferPlan.of(direction, ns, controller.maxTransferBytes(), extents);
  }
}
