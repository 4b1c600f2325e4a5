package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.IdentifyNamespace;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The part of the contract that is about blocks: every command, every size, every buffer. */
abstract class BlockContract extends ExternalQueueContract {
  @Test
  void everySizeUpToTheLimitAndBeyond() {
    try (BlockDevice device = device(4)) {
      int size = device.namespace().blockSize();
      long limit = Math.min(controller.maxTransferBytes(), 2 * MIB) / size;
      DmaBuffer b = buffer((3 * limit + 38) * size);
      long[] sizes = {
        1, 2, 3, 7, 8, 9, 15, 16, 17, 33, limit - 1, limit, limit + 1, 2 * limit, 3 * limit + 5
      };
      long room = device.namespace().blocks();
      for (long blocks : Arrays.stream(sizes).filter(n -> n > 0).distinct().toArray()) {
        roundTrip(device, random.nextLong(room - blocks + 1), blocks, b, 0);
      }
      roundTrip(device, 0, 1, b, 0);
      roundTrip(device, room - 1, 1, b, 0);
      roundTrip(device, room - 9, 9, b, 0);
    }
  }

  @Test
  void buffersMayStartAtAnyDword() {
    try (BlockDevice device = device(4)) {
      int size = device.namespace().blockSize();
      long limit = Math.min(controller.maxTransferBytes(), 2 * MIB) / size;
      DmaBuffer b = buffer((limit + 9) * size + 3 * 4096);
      for (long offset : new long[] {4, 508, 512, 516, 2044, 4092, 4096, 4100, 8188}) {
        for (long blocks : new long[] {1, 2, 8, 9, limit}) {
          roundTrip(device, random.nextLong(1000), blocks, b, offset);
        }
      }
    }
  }

  @Test
  void listsOfExactlyOnePageAndChainedLists() {
    // Two more than a list page describes: a chain of lists wherever the buffer starts.
    assumeTrue(controller.maxTransferBytes() >= 515 * 4096, "the longest transfer needs no chain");
    try (BlockDevice device = device(2)) {
      int size = device.namespace().blockSize();
      long perPage = 4096 / size;
      assumeTrue(perPage > 0, "blocks are longer than 4 KiB");
      DmaBuffer b = buffer(6 * MIB + 8192);
      // Pages after the first need an entry each: 511 and 512 fill a list page, 513 needs a chain.
      for (long entries : new long[] {2, 511, 512, 513, 1022, 1023, 1024, 1025}) {
        long blocks = (entries + 1) * perPage;
        if ((blocks + perPage) * size > controller.maxTransferBytes()) {
          break;
        }
        long commands = device.queue().submitted();
        roundTrip(device, 3, blocks, b, 0);
        assertThat(device.queue().submitted() - commands).as("one command each").isEqualTo(2);
        roundTrip(device, 3, blocks - 1, b, 512);
        roundTrip(device, 3, blocks, b, 4092);
      }
    }
  }

  @Test
  void scatterGatherLists() {
    assumeTrue(controller.supportsSgl(), "no SGLs");
    reopen(o -> o.dataPointers(DataPointerMode.SGL));
    try (BlockDevice device = device(4)) {
      int size = device.namespace().blockSize();
      long limit = Math.min(controller.maxTransferBytes(), 2 * MIB) / size;
      DmaBuffer b = buffer((2 * limit + 3) * size + 8192);
      for (long blocks : new long[] {1, 8, limit, 2 * limit + 3}) {
        for (long offset : new long[] {0, 4, 4092}) {
          roundTrip(device, random.nextLong(1000), blocks, b, offset);
        }
      }
    }
  }

  @Test
  void everyNamespaceKeepsItsOwnBlocks() {
    List<BlockDevice> devices = new ArrayList<>();
    for (Expected e : expected()) {
      devices.add(BlockDevice.open(controller, controller.namespace(e.nsid()), 4));
    }
    DmaBuffer b = buffer(1 * MIB);
    for (BlockDevice d : devices) {
      int size = d.namespace().blockSize();
      Blocks.fill(b.memory(), 0, 5, 4, size, d.namespace().nsid());
      d.write(5, 4, b.range(), 0);
    }
    for (BlockDevice d : devices) {
      int size = d.namespace().blockSize();
      d.read(5, 4, b.range(), 0);
      assertThat(Blocks.mismatch(b.memory(), 0, 5, 4, size, d.namespace().nsid())).isEqualTo(-1);
      d.close();
    }
  }

  @Test
  void compareTellsEqualFromDifferent() {
    assumeTrue(
        (controller.identify().getInt(IdentifyController.ONCS) & IdentifyController.ONCS_COMPARE)
            != 0,
        "no Compare");
    try (BlockDevice device = device(4)) {
      int size = device.namespace().blockSize();
      DmaBuffer b = buffer(64L * size);
      Blocks.fill(b.memory(), 0, 10, 64, size, 1);
      device.write(10, 64, b.range(), 0);
      device.compare(10, 64, b.range(), 0);
      b.memory().set(ValueLayout.JAVA_BYTE, 63L * size + 7, (byte) 0);
      NvmeStatusException e =
          catchThrowableOfType(
              NvmeStatusException.class, () -> device.compare(10, 64, b.range(), 0));
      assertThat(StatusCode.of(e.status())).isEqualTo(StatusCode.COMPARE_FAILURE);
      assertThat(e.opcode()).isEqualTo(IoOpcode.COMPARE);
      device.compare(10, 63, b.range(), 0);
    }
  }

  @Test
  void writeZeroesClears() {
    assumeTrue(
        (controller.identify().getInt(IdentifyController.ONCS)
                & IdentifyController.ONCS_WRITE_ZEROES)
            != 0,
        "no Write Zeroes");
    try (BlockDevice device = device(4)) {
      int size = device.namespace().blockSize();
      long many = controller.maxTransferBytes() / size + 3;
      DmaBuffer b = buffer((many + 2) * size);
      Blocks.fill(b.memory(), 0, 0, many + 2, size, 2);
      device.write(0, many + 2, b.range(), 0);
      device.writeZeroes(1, many, false);
      device.read(0, many + 2, b.range(), 0);
      assertThat(Blocks.mismatch(b.memory(), 0, 0, 1, size, 2)).isEqualTo(-1);
      assertThat(Blocks.zero(b.memory(), size, many * size)).isTrue();
      assertThat(Blocks.mismatch(b.memory(), (many + 1) * size, many + 1, 1, size, 2))
          .isEqualTo(-1);
    }
  }

  @Test
  void trimmedBlocksReadAsIdentifySays() {
    assumeTrue(
        (controller.identify().getInt(IdentifyController.ONCS)
                & IdentifyController.ONCS_DATASET_MANAGEMENT)
            != 0,
        "no Dataset Management");
    try (BlockDevice device = device(4)) {
      int size = device.namespace().blockSize();
      DmaBuffer b = buffer(40L * size);
      Blocks.fill(b.memory(), 0, 100, 40, size, 3);
      device.write(100, 40, b.range(), 0);
      device.trim(108, 16);
      device.read(100, 40, b.range(), 0);
      assertThat(Blocks.mismatch(b.memory(), 0, 100, 8, size, 3)).isEqualTo(-1);
      assertThat(Blocks.mismatch(b.memory(), 24L * size, 124, 16, size, 3)).isEqualTo(-1);
      if ((device.namespace().identify().getInt(IdentifyNamespace.DLFEAT) & 7) == 1) {
        assertThat(Blocks.zero(b.memory(), 8L * size, 16L * size)).isTrue();
      }
    }
  }

  @Test
  void uncorrectableBlocksFailUntilWritten() {
    assumeTrue(
        (controller.identify().getInt(IdentifyController.ONCS)
                & IdentifyController.ONCS_WRITE_UNCORRECTABLE)
            != 0,
        "no Write Uncorrectable");
    try (BlockDevice device = device(4)) {
      DmaBuffer b = buffer(16L * device.namespace().blockSize());
      device.write(0, 16, b.range(), 0);
      device.writeUncorrectable(4, 2);
      NvmeStatusException e =
          catchThrowableOfType(NvmeStatusException.class, () -> device.read(0, 16, b.range(), 0));
      assertThat(StatusCode.of(e.status())).isEqualTo(StatusCode.UNRECOVERED_READ_ERROR);
      device.read(0, 4, b.range(), 0);
      device.read(6, 10, b.range(), 0);
      roundTrip(device, 4, 2, b, 0);
    }
  }

  @Test
  void flushVerifyAndForcedWrites() {
    try (BlockDevice device = device(4)) {
      DmaBuffer b = buffer(8L * device.namespace().blockSize());
      device.write(0, 8, b.range(), 0, true);
      device.flush();
      if ((controller.identify().getInt(IdentifyController.ONCS) & IdentifyController.ONCS_VERIFY)
          != 0) {
        device.verify(0, 8);
      }
      device.read(0, 8, b.range(), 0);
    }
  }

  @Test
  void blocksOutsideTheNamespaceAreRefused() {
    try (BlockDevice device = device(4)) {
      long blocks = device.namespace().blocks();
      DmaBuffer b = buffer(8L * device.namespace().blockSize());
      long before = device.queue().submitted();
      for (long[] range : new long[][] {{blocks, 1}, {blocks - 1, 2}, {-1, 1}, {0, 0}, {1, -1}}) {
        assertThatThrownBy(() -> device.read(range[0], range[1], b.range(), 0))
            .isInstanceOf(InvalidRequestException.class);
      }
      long most = b.size() / device.namespace().blockSize();
      assertThatThrownBy(() -> device.read(0, most, b.range(), 4))
          .isInstanceOf(InvalidRequestException.class);
      assertThatThrownBy(() -> device.read(0, 1, b.range(), 2))
          .isInstanceOf(InvalidRequestException.class);
      assertThat(device.queue().submitted()).isEqualTo(before);
    }
  }

  @Test
  void theControllerChecksBlocksToo() {
    QueuePair queue = controller.createQueuePair(2);
    Namespace ns = first();
    int size = ns.blockSize();
    DmaBuffer b = buffer(size);
    List<NvmeStatusException> failed = new ArrayList<>();
    queue.submitIo(IoOpcode.READ, ns.nsid(), ns.blocks(), 1, 0, b.range(), 0, size, 0);
    queue.ring();
    while (queue.inFlight() > 0) {
      queue.poll((q, slot, status) -> failed.add(q.exception(slot, status)));
    }
    assertThat(failed).hasSize(1);
    assertThat(StatusCode.of(failed.getFirst().status())).isEqualTo(StatusCode.LBA_OUT_OF_RANGE);
    assertThat(failed.getFirst().slba()).isEqualTo(ns.blocks());
    assertThat(failed.getFirst().retryable()).isFalse();
    runWrapped(queue, 5);
  }

  @Test
  void readOnlyControllersRefuseToWrite() {
    reopen(o -> o.allowWrite(false));
    try (BlockDevice device = device(4)) {
      DmaBuffer b = buffer(device.namespace().blockSize());
      device.read(0, 1, b.range(), 0);
      device.flush();
      List<Runnable> writes =
          List.of(
              () -> device.write(0, 1, b.range(), 0),
              () -> device.writeZeroes(0, 1, false),
              () -> device.writeUncorrectable(0, 1),
              () -> device.trim(0, 1),
              () -> controller.format(1, 0, 0));
      for (Runnable write : writes) {
        assertThatThrownBy(write::run)
            .isInstanceOf(InvalidRequestException.class)
            .hasMessageContaining("allowWrite");
      }
    }
  }

  @Test
  void formatChangesTheBlockSizeAndBack() {
    assumeTrue(mayFormat(), "this device may not be formatted");
    Namespace before = first();
    IdentifyNamespace id = before.identify();
    int other =
        IntStream.rangeClosed(0, id.getInt(IdentifyNamespace.NLBAF))
            .filter(i -> i != id.formatIndex() && id.lbaf(i).ms() == 0 && id.lbaf(i).lbads() >= 9)
            .findFirst()
            .orElseThrow();
    try (BlockDevice device = device(2)) {
      roundTrip(device, 0, 8, buffer(8L * before.blockSize()), 0);
    }
    controller.format(before.nsid(), other, 0);
    assertThat(first().blockSize()).isEqualTo(1 << id.lbaf(other).lbads());
    assertThat(first().bytes()).isCloseTo(before.bytes(), within(MIB));
    try (BlockDevice device = device(2)) {
      DmaBuffer b = buffer(8L * first().blockSize());
      b.memory().fill((byte) 1);
      device.read(0, 8, b.range(), 0);
      assertThat(Blocks.zero(b.memory(), 0, 8L * first().blockSize())).isTrue();
      roundTrip(device, 3, 5, b, 0);
    }
    controller.format(before.nsid(), id.formatIndex(), 0);
    assertThat(first().blockSize()).isEqualTo(before.blockSize());
    assertThat(first().blocks()).isEqualTo(before.blocks());
  }

  @Test
  void threadsWithQueuePairsOfTheirOwn() throws Exception {
    int threads = Math.min(4, controller.maxQueuePairs());
    List<Future<?>> done = new ArrayList<>();
    try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
      for (int t = 0; t < threads; t++) {
        int mark = t;
        done.add(pool.submit(() -> hammer(mark, 2000L * mark, new AtomicBoolean(), 30)));
      }
      for (Future<?> f : done) {
        f.get(60, TimeUnit.SECONDS);
      }
    }
  }
}
