package io.gpunvme.tools.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.CpuAccelerator;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** {@link LeanQueue} and {@link LeanResponder} against an initiator that writes bytes by hand. */
@Timeout(300)
class LeanResponderTest {
  private static final int DEPTH = 4;
  private static final int SQ_SIZE = 8;
  private static final int CQ_SIZE = 8;

  private final CpuAccelerator cpu = CpuAccelerator.open();
  private final QueueShape shape = new QueueShape(false, false, 3, DEPTH);
  private final BenchQueues queues = new BenchQueues(cpu, shape, 1_000_000_000);
  private final int[] next = new int[shape.queues()];

  @AfterEach
  void close() {
    queues.close();
    cpu.close();
  }

  /** Command n of a queue, in the order of its numbers: slot n mod depth, generation n / depth. */
  private void submit(int queue) {
    int n = next[queue];
    int cid = n % DEPTH | n / DEPTH << 2;
    MemorySegment sqe = sqe(queue, n);
    sqe.fill((byte) 0);
    sqe.set(ValueLayout.JAVA_INT, 0, 2 | cid << 16);
    sqe.set(ValueLayout.JAVA_INT, 4, 1);
    sqe.set(ValueLayout.JAVA_LONG, 24, Integer.toUnsignedLong(n << 12));
    sqe.set(ValueLayout.JAVA_LONG, 40, n);
    next[queue]++;
  }

  private MemorySegment sqe(int queue, int n) {
    return queues.rings().asSlice(shape.sqOffset(queue) + n % SQ_SIZE * 64L, 64);
  }

  private void ring(int queue) {
    queues
        .doorbells()
        .set(ValueLayout.JAVA_INT, shape.doorbellOffset(queue), next[queue] % SQ_SIZE);
  }

  private int dword(int queue, int n, int index) {
    long at = shape.cqOffset(queue) + n % CQ_SIZE * 16L + index * 4L;
    return queues.rings().get(ValueLayout.JAVA_INT, at);
  }

  @Test
  void answersWithCidPhaseHeadAndQueueForManyRounds() {
    LeanQueue served = new LeanQueue(queues, 1, true);
    for (int n = 0; n < 1000; n++) {
      submit(1);
      ring(1);
      assertThat(served.turn()).isTrue();
      assertThat(served.turn()).isFalse();
      assertThat(dword(1, n, 0)).isZero();
      assertThat(dword(1, n, 1)).isZero();
      assertThat(dword(1, n, 2)).as("SQID, SQHD").isEqualTo(2 << 16 | (n + 1) % SQ_SIZE);
      int phase = n / CQ_SIZE % 2 == 0 ? 1 : 0;
      int cid = n % DEPTH | n / DEPTH << 2;
      assertThat(dword(1, n, 3)).as("status, P, CID of %d", n).isEqualTo(phase << 16 | cid);
    }
    assertThat(served.counts()).isEqualTo(new ResponderCounts(1000, 0, 1000, 1000 * 999 / 2));
  }

  @Test
  void oneDoorbellAnnouncesSeveral() {
    LeanQueue served = new LeanQueue(queues, 0, true);
    for (int i = 0; i < 4; i++) {
      submit(0);
    }
    ring(0);
    served.turn();

    assertThat(served.counts()).isEqualTo(new ResponderCounts(4, 0, 1, 6));
  }

  /** Each field of an SQE that is not what it should be. */
  @Test
  void everyWrongFieldIsCounted() {
    LeanQueue served = new LeanQueue(queues, 0, true);
    for (int dword = 0; dword < 16; dword++) {
      submit(0);
      MemorySegment sqe = sqe(0, next[0] - 1);
      int was = sqe.get(ValueLayout.JAVA_INT, dword * 4L);
      sqe.set(ValueLayout.JAVA_INT, dword * 4L, was ^ 0x100);
      ring(0);
      served.turn();
      assertThat(served.counts().wrong()).as("CDW%d", dword).isEqualTo(dword + 1);
      assertThat(served.counts().answered()).isEqualTo(dword + 1);
    }
  }

  @Test
  void aCidOutOfTurnIsCounted() {
    LeanQueue served = new LeanQueue(queues, 0, true);
    submit(0);
    sqe(0, 0).set(ValueLayout.JAVA_INT, 0, 2 | DEPTH << 16);
    ring(0);
    served.turn();

    assertThat(served.counts().wrong()).isEqualTo(1);
  }

  @Test
  void aNumberOutOfOrderIsWrongOnlyWhereOrderIsPromised() {
    for (boolean ordered : new boolean[] {true, false}) {
      queues.reset();
      next[0] = 0;
      LeanQueue served = new LeanQueue(queues, 0, ordered);
      submit(0);
      sqe(0, 0).set(ValueLayout.JAVA_LONG, 24, 7 << 12);
      sqe(0, 0).set(ValueLayout.JAVA_LONG, 40, 7);
      ring(0);
      served.turn();
      assertThat(served.counts()).isEqualTo(new ResponderCounts(1, ordered ? 1 : 0, 1, 7));
    }
  }

  @Test
  void aDoorbellBeyondTheRingIsCountedAndNotFollowed() {
    LeanQueue served = new LeanQueue(queues, 0, true);
    queues.doorbells().set(ValueLayout.JAVA_INT, shape.doorbellOffset(0), SQ_SIZE);

    assertThat(served.turn()).isFalse();
    assertThat(served.counts().wrong()).isEqualTo(1);
    assertThat(served.counts().answered()).isZero();
  }

  @Test
  void threadsServeAllQueues() {
    try (LeanResponder responder = new LeanResponder(queues, 2, true)) {
      for (int round = 0; round < 200; round++) {
        for (int q = 0; q < shape.queues(); q++) {
          submit(q);
          ring(q);
        }
        for (int q = 0; q < shape.queues(); q++) {
          int phase = round / CQ_SIZE % 2 == 0 ? 1 : 0;
          while ((dword(q, round, 3) >>> 16 & 1) != phase || dword(q, round, 2) == 0) {
            Thread.onSpinWait();
          }
        }
      }
      ResponderCounts counts = responder.end();
      assertThat(counts.answered()).isEqualTo(600);
      assertThat(counts.wrong()).isZero();
      assertThat(counts.sum()).isEqualTo(3 * 200 * 199 / 2);
      assertThat(responder.end()).isEqualTo(counts);
    }
  }
}
