package io.gpunvme.gpu.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Every block of every namespace of a real controller, written and read by up to four queue pairs
 * in random order and sizes. Whoever has the other side of the disk compares too: the terminal that
 * {@code gpunvme.image} names gets a line {@code nsid seed bytes} for each namespace, and answers
 * {@code equal}.
 */
@Tag("qemu")
class RealImageTest {
  private static final int WINDOW = 32 << 20;
  private static final int QUEUES = 4;
  private static final int DEPTH = 16;
  private static final int THREADS = 2;
  private static final int LONGEST_EXTENT = 1 << 20;

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());

  @Test
  @Timeout(300)
  void everyBlockIsReadAsWritten() throws IOException {
    String address = System.getProperty("gpunvme.device", "");
    assumeTrue(
        !address.isEmpty(), "no real controller: none is named by -Dgpunvme.device=vfio:ADDRESS");
    ControllerOptions options = ControllerOptions.builder().allowWrite(true).build();
    try (Device device = Device.open(address, options);
        CpuAccelerator cpu = CpuAccelerator.open();
        DeviceBuffer buffer = cpu.allocate(WINDOW)) {
      NvmeController controller = device.controller();
      int queues = Math.min(QUEUES, controller.maxQueuePairs());
      try (CpuInitiator initiator = new CpuInitiator(controller, queues, DEPTH, THREADS, 0)) {
        for (Namespace ns : controller.namespaces()) {
          write(initiator, buffer, controller, ns);
          readBack(initiator, buffer, controller, ns);
          compareFromOutside(ns.nsid() + " " + (seed + ns.nsid()) + " " + ns.bytes());
        }
      }
    }
  }

  private void write(
      CpuInitiator initiator, DeviceBuffer buffer, NvmeController controller, Namespace ns) {
    for (long at = 0; at < ns.bytes(); at += WINDOW) {
      long bytes = Math.min(WINDOW, ns.bytes() - at);
      SeededImage.fill(buffer.segment(), seed + ns.nsid(), at, bytes);
      TransferReport report =
          initiator.run(plan(Direction.WRITE, controller, ns, at, bytes), buffer, b -> {});
      assertThat(report.bytes()).isEqualTo(bytes);
    }
  }

  private void readBack(
      CpuInitiator initiator, DeviceBuffer buffer, NvmeController controller, Namespace ns) {
    for (long at = 0; at < ns.bytes(); at += WINDOW) {
      long bytes = Math.min(WINDOW, ns.bytes() - at);
      buffer.segment().fill((byte) 0x5A);
      initiator.run(plan(Direction.READ, controller, ns, at, bytes), buffer, b -> {});
      assertThat(SeededImage.mismatch(buffer.segment(), seed + ns.nsid(), at, bytes))
          .as("namespace %d from byte %d, seed %d", ns.nsid(), at, seed)
          .isEqualTo(-1);
    }
  }

  /** Extents of random length that cover the window once, in random order. */
  private TransferPlan plan(
      Direction direction, NvmeController controller, Namespace ns, long position, long bytes) {
    SplittableRandom random = new SplittableRandom(seed + position + direction.ordinal());
    int size = ns.blockSize();
    List<Extent> extents = new ArrayList<>();
    for (long at = 0; at < bytes; ) {
      long blocks = Math.min((bytes - at) / size, 1 + random.nextInt(LONGEST_EXTENT / size));
      extents.add(new Extent((position + at) / size, blocks, at));
      at += blocks * size;
    }
    for (int i = extents.size() - 1; i > 0; i--) {
      Extent e = extents.get(i);
      extents.set(i, extents.set(random.nextInt(i + 1), e));
    }
    return TransferPlan.of(direction, ns, controller.maxTransferBytes(), extents);
  }

  private static void compareFromOutside(String request) throws IOException {
    String terminal = System.getProperty("gpunvme.image", "");
    if (!terminal.isEmpty()) {
      try (RandomAccessFile outside = new RandomAccessFile(terminal, "rw")) {
        outside.writeBytes(request + "\n");
        assertThat(outside.readLine())
            .as("from outside: nsid, seed, bytes: %s", request)
            .isEqualTo("equal");
      }
    }
  }
}
