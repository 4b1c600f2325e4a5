package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.spec.IoOpcode;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** What the contract's tests are written with. */
abstract class ContractRig {
  static final long MIB = 1 << 20;

  /**
   * What is known of a namespace beforehand.
   *
   * @param blocks at least 16 MiB worth of them
   */
  record Expected(int nsid, int blockSize, long blocks) {}

  /** Reaches the controller; contents survive from call to call within a test. One at a time. */
  abstract PciFunction function();

  /** All active namespaces, usable ones only. */
  abstract List<Expected> expected();

  /** Whether the first namespace may be formatted. */
  boolean mayFormat() {
    return false;
  }

  /** Options every test starts from; writing must be allowed. */
  ControllerOptions.Builder options() {
    return ControllerOptions.builder()
        .allowWrite(true)
        .ioTimeout(Duration.ofSeconds(10))
        .adminTimeout(Duration.ofSeconds(10))
        .maxTransferBytes(8 * MIB);
  }

  private final long seed = seed();
  final SplittableRandom random = new SplittableRandom(seed);
  private final List<DmaBuffer> buffers = new ArrayList<>();

  NvmeController controller;

  @BeforeEach
  void open() {
    controller = NvmeController.open(function(), options().build());
  }

  @AfterEach
  void close() {
    buffers.forEach(DmaBuffer::close);
    controller.close();
  }

  void reopen(Consumer<ControllerOptions.Builder> change) {
    buffers.forEach(DmaBuffer::close);
    buffers.clear();
    controller.close();
    ControllerOptions.Builder b = options();
    change.accept(b);
    controller = NvmeController.open(function(), b.build());
  }

  private static long seed() {
    String given = System.getProperty("gpunvme.seed", "");
    return given.isEmpty() ? System.nanoTime() : Long.parseLong(given);
  }

  String where(String what) {
    return what + " (-Dgpunvme.seed=" + seed + ")";
  }

  DmaBuffer buffer(long bytes) {
    DmaBuffer buffer = DmaBuffer.allocate(controller.function(), bytes);
    buffers.add(buffer);
    return buffer;
  }

  BlockDevice device(int depth) {
    return BlockDevice.open(controller, first(), depth);
  }

  Namespace first() {
    return controller.namespace(expected().getFirst().nsid());
  }

  /** Writes, clears the buffer, reads back and compares. */
  void roundTrip(BlockDevice device, long slba, long blocks, DmaBuffer b, long offset) {
    int size = device.namespace().blockSize();
    int mark = random.nextInt();
    String what = where(blocks + " blocks at " + slba + ", buffer offset " + offset);
    Blocks.fill(b.memory(), offset, slba, blocks, size, mark);
    device.write(slba, blocks, b.range(), offset);
    b.memory().fill((byte) 0x5A);
    device.read(slba, blocks, b.range(), offset);
    assertThat(Blocks.mismatch(b.memory(), offset, slba, blocks, size, mark))
        .as(what)
        .isEqualTo(-1);
    byte before = offset == 0 ? 0x5A : b.memory().get(ValueLayout.JAVA_BYTE, offset - 1);
    assertThat(before).as(what).isEqualTo((byte) 0x5A);
    long end = offset + blocks * size;
    if (end < b.size()) {
      byte after = b.memory().get(ValueLayout.JAVA_BYTE, end);
      assertThat(after).as(what).isEqualTo((byte) 0x5A);
    }
  }

  /** So many one-block reads that the rings wrap, at full depth. */
  void runWrapped(QueuePair queue, int commands) {
    int size = first().blockSize();
    DmaBuffer b = buffer(size);
    int[] done = {0, 0};
    CompletionSink sink =
        (q, slot, status) -> {
          done[0]++;
          done[1] += status == 0 ? 0 : 1;
        };
    Backoff backoff = new Backoff();
    long start = System.nanoTime();
    int sent = 0;
    while (done[0] < commands) {
      while (sent < commands
          && queue.submitIo(IoOpcode.READ, first().nsid(), sent % 100, 1, 0, b.range(), 0, size, 0)
              >= 0) {
        sent++;
      }
      queue.ring();
      if (queue.poll(sink) > 0) {
        backoff.reset();
      } else {
        backoff.pause();
      }
      assertThat(System.nanoTime() - start).as(where("stuck")).isLessThan(30_000_000_000L);
    }
    assertThat(done[1]).as("failed commands").isZero();
    assertThat(queue.inFlight()).isZero();
    assertThat(queue.sqDoorbells()).isLessThanOrEqualTo(commands);
  }

  /** Writes and reads back ranges in [base, base + 2000) until told to stop or out of rounds. */
  int hammer(int mark, long base, AtomicBoolean stop, int rounds) {
    SplittableRandom r = new SplittableRandom(seed + mark);
    int done = 0;
    try (BlockDevice device = device(8);
        DmaBuffer b = DmaBuffer.allocate(controller.function(), 2 * MIB)) {
      int size = device.namespace().blockSize();
      while (!stop.get() && done < rounds) {
        long blocks = 1 + r.nextLong(Math.min(200, 2 * MIB / size));
        long slba = base + r.nextLong(2000 - blocks);
        int value = r.nextInt();
        Blocks.fill(b.memory(), 0, slba, blocks, size, value);
        device.write(slba, blocks, b.range(), 0);
        b.memory().fill((byte) 0);
        device.read(slba, blocks, b.range(), 0);
        assertThat(Blocks.mismatch(b.memory(), 0, slba, blocks, size, value))
            .as(where("thread " + mark + ", round " + done))
            .isEqualTo(-1);
        done++;
      }
    }
    return done;
  }
}
