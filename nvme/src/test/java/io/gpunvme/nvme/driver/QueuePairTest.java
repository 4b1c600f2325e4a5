package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a queue pair does when all goes well, and how it is laid out. */
class QueuePairTest extends QueuePairRig {
  @Test
  void aBlockCommandIsWrittenFieldByField() {
    QueuePair queue = queue(8, 8, 7);
    try (DmaBuffer data = DmaBuffer.allocate(bus, 65536)) {
      int slot =
          queue.submitIo(IoOpcode.READ, 9, 0x1_2345_6789L, 16, 1 << 30, data.range(), 4, 8192, 77);
      assertThat(slot).isZero();
      assertThat(Sqe.opcode(sq, 0)).isEqualTo(IoOpcode.READ);
      assertThat(Sqe.flags(sq, 0)).isZero();
      assertThat(Sqe.cid(sq, 0)).isEqualTo(queue.cid(slot));
      assertThat(Sqe.nsid(sq, 0)).isEqualTo(9);
      assertThat(Sqe.cdw2(sq, 0)).isZero();
      assertThat(Sqe.mptr(sq, 0)).isZero();
      assertThat(Sqe.dptr1(sq, 0)).isEqualTo(data.busAddress(4));
      // 8192 bytes from offset 4 touch three pages: PRP2 is a list in this queue's memory
      assertThat(bus.readLong(Sqe.dptr2(sq, 0))).isEqualTo(data.busAddress(4096));
      assertThat(bus.readLong(Sqe.dptr2(sq, 0) + 8)).isEqualTo(data.busAddress(8192));
      assertThat(Sqe.cdw10(sq, 0)).isEqualTo(0x2345_6789);
      assertThat(Sqe.cdw11(sq, 0)).isEqualTo(1);
      assertThat(Sqe.cdw12(sq, 0)).isEqualTo(15 | 1 << 30);
      assertThat(Sqe.cdw13(sq, 0) | Sqe.cdw14(sq, 0) | Sqe.cdw15(sq, 0)).isZero();
      assertThat(queue.userData(slot)).isEqualTo(77);
      int second = queue.submitIo(IoOpcode.READ, 9, 0, 1, 0, data.range(), 0, 512, 78);
      assertThat(Sqe.cid(sq, 64)).isEqualTo(queue.cid(second)).isNotEqualTo(queue.cid(slot));
      assertThat(queue.opcode(slot)).isEqualTo(IoOpcode.READ);
      assertThat(queue.nsid(slot)).isEqualTo(9);
      assertThat(queue.slba(slot)).isEqualTo(0x1_2345_6789L);
    }
  }

  @Test
  void thePollerIsToldAfterTheTailIsStored() {
    QueuePair queue = queue(8, 8, 7);
    List<Integer> tails = new ArrayList<>();
    poller.onRang = () -> tails.add(sqDoorbell());
    queue.ring();
    int first = submit(queue, 1);
    submit(queue, 2);
    assertThat(poller.rang).as("nothing rung yet").isZero();
    queue.ring();
    queue.ring();
    submit(queue, 3);
    queue.ring();
    assertThat(tails).containsExactly(2, 3);
    post(queue, queue.cid(first), 0, 0);
    assertThat(queue.poll(sink)).isEqualTo(1);
    assertThat(poller.rang).as("free entries of the completion queue are no news").isEqualTo(2);
  }

  @Test
  void aPreparedCommandKeepsItsFieldsAndGetsCidAndDataPointer() {
    QueuePair queue = queue(8, 8, 7, DataPointerMode.SGL);
    MemorySegment template = arena.allocate(64, 8);
    Sqe.put(
        template,
        0,
        Sqe.cdw0(IoOpcode.DATASET_MANAGEMENT, 0, 0xABC),
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        10,
        11);
    try (DmaBuffer data = DmaBuffer.allocate(bus, 4096)) {
      int slot = queue.submit(template, data.range(), 16, 32, 5);
      assertThat(Sqe.cid(sq, 0)).isEqualTo(queue.cid(slot));
      assertThat(Sqe.psdt(sq, 0)).isEqualTo(1);
      assertThat(Sqe.dptr1(sq, 0)).isEqualTo(data.busAddress(16));
      assertThat(Sqe.dptr2(sq, 0)).isEqualTo(32);
      assertThat(Sqe.mptr(sq, 0)).isEqualTo(3);
      assertThat(Sqe.cdw15(sq, 0)).isEqualTo(11);
      assertThat(queue.slba(slot)).isEqualTo(-1);
      assertThat(queue.submit(template, null, 0, 0, 6)).isNotNegative().isNotEqualTo(slot);
      assertThat(Sqe.dptr1(sq, 64)).isEqualTo(4);
      assertThat(Sqe.dptr2(sq, 64)).isEqualTo(5);
      assertThat(Sqe.psdt(sq, 64)).isZero();
    }
  }

  @Test
  void oneDoorbellStoreForABatchAndNoneForNothing() {
    QueuePair queue = queue(8, 8, 7);
    queue.ring();
    assertThat(queue.sqDoorbells()).isZero();
    for (int i = 0; i < 5; i++) {
      submit(queue, i);
    }
    assertThat(sqDoorbell()).isZero();
    queue.ring();
    queue.ring();
    assertThat(sqDoorbell()).isEqualTo(5);
    assertThat(queue.sqDoorbells()).isEqualTo(1);
    assertThat(queue.submitted()).isEqualTo(5);
    for (int slot : new int[] {4, 2, 0, 1, 3}) {
      post(queue, queue.cid(slot), 0, 100 + slot);
    }
    assertThat(queue.poll(sink)).isEqualTo(5);
    assertThat(seen).containsExactly("4:0:104", "2:0:102", "0:0:100", "1:0:101", "3:0:103");
    assertThat(cqDoorbell()).isEqualTo(5);
    assertThat(queue.cqDoorbells()).isEqualTo(1);
    assertThat(queue.completed()).isEqualTo(5);
    assertThat(queue.inFlight()).isZero();
    assertThat(queue.poll(sink)).isZero();
    assertThat(queue.cqDoorbells()).isEqualTo(1);
  }

  @ParameterizedTest(name = "SQ and CQ of {0} entries")
  @ValueSource(ints = {2, 3, 5, 64})
  void ringsWrapAndThePhaseTurns(int size) {
    QueuePair queue = queue(size, size, size - 1);
    for (int i = 0; i < 5 * size; i++) {
      int slot = submit(queue, i);
      assertThat(slot).isNotNegative();
      queue.ring();
      assertThat(sqDoorbell()).isEqualTo((i + 1) % size);
      assertThat(queue.poll(sink)).isZero();
      post(queue, queue.cid(slot), 0, 0);
      assertThat(queue.poll(sink)).isEqualTo(1);
      assertThat(cqDoorbell()).isEqualTo((i + 1) % size);
      assertThat(seen).hasSize(i + 1).last().isEqualTo(i + ":0:0");
    }
  }

  @Test
  void sqAndCqMayDifferInSize() {
    QueuePair queue = queue(4, 9, 3);
    for (int i = 0; i < 100; i++) {
      int slot = submit(queue, i);
      queue.ring();
      post(queue, queue.cid(slot), 0, 0);
      assertThat(queue.poll(sink)).isEqualTo(1);
    }
    assertThat(sqDoorbell()).isEqualTo(0);
    assertThat(cqDoorbell()).isEqualTo(1);
  }

  @Test
  void aFullQueueRefusesAndACompletionMakesRoom() {
    QueuePair queue = queue(4, 4, 3);
    assertThat(queue.hasRoom()).isTrue();
    for (int i = 0; i < 3; i++) {
      assertThat(submit(queue, i)).isEqualTo(i);
    }
    assertThat(submit(queue, 9)).isEqualTo(-1);
    assertThat(queue.submit(arena.allocate(64, 8), null, 0, 0, 9)).isEqualTo(-1);
    assertThat(queue.hasRoom()).isFalse();
    assertThat(queue.inFlight()).isEqualTo(3);
    queue.ring();
    post(queue, queue.cid(1), 0, 0);
    queue.poll(sink);
    assertThat(queue.hasRoom()).isTrue();
    assertThat(submit(queue, 9)).isEqualTo(1);
  }

  @Test
  void aRefusedDataPointerLeavesNoTrace() {
    QueuePair queue = queue(4, 4, 3);
    try (DmaBuffer data = DmaBuffer.allocate(bus, 4096)) {
      BusRange range = data.range();
      assertThatThrownBy(() -> queue.submitIo(IoOpcode.READ, 1, 0, 1, 0, range, 1, 512, 0))
          .isInstanceOf(InvalidRequestException.class);
    }
    assertThat(queue.inFlight()).isZero();
    queue.ring();
    assertThat(queue.sqDoorbells()).isZero();
  }

  @Test
  void generationsCycleAndNeverUseTheReservedCid() {
    // With slot 0 taken, slot 1 cycles through all its generations and would reach FFFFh.
    QueuePair queue = queue(4, 4, 2);
    submit(queue, -1);
    int last = -2;
    for (int i = 0; i < 70_000; i++) {
      int slot = submit(queue, i);
      int cid = queue.cid(slot);
      assertThat(cid).isBetween(0, 0xFFFE).isNotEqualTo(last);
      last = cid;
      assertThat(slot).isEqualTo(1);
      assertThat(cid & 1).isEqualTo(slot);
      queue.ring();
      post(queue, cid, 0, 0);
      assertThat(queue.poll((q, s, st) -> {})).isEqualTo(1);
    }
  }

  @Test
  void theShapeIsTold() {
    QueuePair queue = queue(8, 16, 5);
    assertThat(queue.qid()).isEqualTo(3);
    assertThat(queue.sqSize()).isEqualTo(8);
    assertThat(queue.cqSize()).isEqualTo(16);
    assertThat(queue.depth()).isEqualTo(5);
    assertThat(queue.maxTransferBytes()).isEqualTo(65536);
    assertThat(queue.timeoutNanos()).isEqualTo(TIMEOUT);
    assertThat(queue.spec().dstrd()).isZero();
  }

  @Test
  void commandsMayBeSubmittedFromTheSink() {
    QueuePair queue = queue(4, 4, 2);
    int slot = submit(queue, 1);
    queue.ring();
    post(queue, queue.cid(slot), 0, 0);
    queue.poll((q, s, st) -> assertThat(submit(q, 2)).isNotNegative().isNotEqualTo(s));
    queue.ring();
    assertThat(sqDoorbell()).isEqualTo(2);
    assertThat(queue.inFlight()).isEqualTo(1);
  }

  @Test
  void latencyRunsFromTheBatchToThePoll() {
    QueuePair queue = queue(4, 4, 3);
    long before = System.nanoTime();
    int slot = submit(queue, 1);
    queue.ring();
    post(queue, queue.cid(slot), 0, 0);
    long[] latency = new long[1];
    queue.poll((q, s, st) -> latency[0] = q.latencyNanos(s));
    assertThat(latency[0]).isBetween(1L, System.nanoTime() - before);
  }

  @Test
  void impossibleShapesAreRefused() {
    assertThatThrownBy(() -> queue(1, 4, 1)).isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> queue(4, 65537, 1)).isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> queue(4, 8, 4))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("1..3");
    assertThatThrownBy(() -> queue(4, 4, 0)).isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> new QueuePairSpec(1, 4, 4, 3, 0, 4096, 4095, DataPointerMode.PRP, 1))
        .isInstanceOf(InvalidRequestException.class);
    assertThat(new QueuePairSpec(1, 4, 4, 3, 0, 4096, 4096, DataPointerMode.PRP, 1).depth())
        .isEqualTo(3);
    assertThat(bus.mapped()).isZero();
  }

  @Test
  void theLargestQueueWorks() {
    QueuePair queue = queue(65536, 65536, 65535);
    for (int i = 0; i < 65535; i++) {
      assertThat(submit(queue, i)).isEqualTo(i);
    }
    assertThat(submit(queue, 0)).isEqualTo(-1);
    queue.ring();
    assertThat(sqDoorbell()).isEqualTo(65535);
    for (int i = 65534; i >= 0; i--) {
      post(queue, queue.cid(i), 0, 0);
    }
    int[] count = {0};
    assertThat(queue.poll((q, s, st) -> count[0]++)).isEqualTo(65535);
    assertThat(count[0]).isEqualTo(65535);
  }
}
