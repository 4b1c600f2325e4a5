package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Rings, doorbells and phases. */
class QueueRingTest {
  private static final MemorySegment FLUSH = RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0);

  private final RawHost host =
      RawHost.start(SimConfig.builder().workers(0).latencyNanos(0).build());

  @AfterEach
  void close() {
    host.close();
  }

  private void poll() {
    host.poll();
  }

  private long errors() {
    return host.controller.stats().doorbellErrors();
  }

  @ParameterizedTest
  @CsvSource({"2,2", "2,5", "5,2", "7,16", "16,7", "1024,3"})
  void anyTwoSizesWorkTogether(int sqSize, int cqSize) {
    RawQueue q = host.createQueue(1, sqSize, cqSize);
    for (int i = 0; i < 5000; i++) {
      q.nextCid = i * 7919 & 0xFFFF;
      assertThat(host.execute(q, FLUSH))
          .returns(0, RawQueue.Completion::status)
          .returns(q.tail, RawQueue.Completion::sqhd)
          .returns(1, RawQueue.Completion::sqid);
    }
    assertThat(errors()).isZero();
  }

  @Test
  void identifiersAreEchoedInFull() {
    RawQueue q = host.createQueue(1, 4, 4);
    for (int cid : new int[] {0, 1, 0x7FFF, 0x8000, 0xFFFF, 0xF00D}) {
      q.push(FLUSH, cid);
      q.ring();
      assertThat(host.next(q).cid()).isEqualTo(cid);
    }
  }

  @Test
  void oneDoorbellMayAnnounceManyCommands() {
    RawQueue q = host.createQueue(1, 512, 512);
    for (int i = 0; i < 511; i++) {
      q.push(FLUSH, 5000 + i);
    }
    q.ring();
    for (int i = 0; i < 511; i++) {
      assertThat(host.next(q).cid()).isEqualTo(5000 + i);
    }
    assertThat(host.controller.stats().commandsOn(1)).isEqualTo(511);
  }

  @Test
  void entriesMayBeReusedOnceFetched() {
    RawQueue q = host.createQueue(1, 4, 4);
    q.push(FLUSH, 1);
    q.ring();
    poll();
    q.sq.memory().fill((byte) 0xFF);
    assertThat(q.poll()).isEqualTo(new RawQueue.Completion(0, 0, 1, 1, 1, 0));
  }

  @Test
  void aFullCompletionQueueHoldsCompletionsBack() {
    RawQueue q = host.createQueue(1, 64, 4);
    for (int i = 0; i < 20; i++) {
      q.push(FLUSH, i);
    }
    q.ring();
    poll();
    poll();
    MemorySegment before = MemorySegment.ofArray(q.cq.memory().toArray(ValueLayout.JAVA_BYTE));
    poll();
    assertThat(q.cq.memory().mismatch(before)).as("touched a full queue").isEqualTo(-1);
    assertThat(q.cq.memory().get(ValueLayout.JAVA_BYTE, 3 * Cqe.SIZE + Cqe.DW3 + 2)).isZero();
    for (int i = 0; i < 20; i++) {
      RawQueue.Completion c = q.take();
      assertThat(c).as("completion " + i).isNotNull();
      assertThat(c.cid()).isEqualTo(i);
      q.ringHead(q.head);
      poll();
    }
    assertThat(host.controller.stats().heldBack()).isEqualTo(17);
    assertThat(errors()).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {8, 9, 0xFFFF, 0x10001, -1, Integer.MIN_VALUE})
  void tailsBeyondTheQueueAreIgnored(int tail) {
    RawQueue q = host.createQueue(1, 8, 8);
    q.ringTail(tail);
    poll();
    poll();
    assertThat(errors()).isEqualTo(1);
    assertThat(host.controller.stats().commandsOn(1)).isZero();
    assertThat(host.csts().isSet(Csts.CFS)).isFalse();
    host.execute(q, FLUSH);
  }

  @Test
  void tailsMayNotGoBackwards() {
    RawQueue q = host.createQueue(1, 8, 8);
    for (int i = 0; i < 5; i++) {
      host.execute(q, FLUSH);
    }
    // With nothing announced the tail may go anywhere; with three entries stuck it may not.
    host.controller.faults().add(FaultRule.of(FaultRule.Action.STALL).onIo().nth(1).build());
    host.execute(q, FLUSH);
    q.push(FLUSH, 100);
    q.push(FLUSH, 101);
    q.push(FLUSH, 102);
    q.ring();
    poll();
    q.ringTail(q.tail - 1);
    poll();
    q.ringTail(6);
    poll();
    assertThat(errors()).isEqualTo(2);
    q.ring();
    host.controller.faults().clear();
    for (int i = 0; i < 3; i++) {
      assertThat(host.next(q).cid()).isEqualTo(100 + i);
    }
    assertThat(errors()).isEqualTo(2);
  }

  @Test
  void headsMayNotOvertakeWhatWasPosted() {
    RawQueue q = host.createQueue(1, 8, 8);
    q.push(FLUSH, 1);
    q.push(FLUSH, 2);
    q.ring();
    poll();
    q.ringHead(3);
    poll();
    assertThat(errors()).isEqualTo(1);
    q.ringHead(8);
    poll();
    assertThat(errors()).isEqualTo(2);
    q.ringHead(2);
    poll();
    assertThat(errors()).isEqualTo(2);
    q.head = 2;
    host.execute(q, FLUSH);
  }

  @Test
  void headsMayNotMoveAheadOfCompletions() {
    RawQueue q = host.createQueue(1, 8, 8);
    q.ringHead(1);
    poll();
    assertThat(errors()).isEqualTo(1);
    q.push(FLUSH);
    q.push(FLUSH);
    q.ring();
    poll();
    q.poll();
    q.poll();
    poll();
    assertThat(errors()).isEqualTo(1);
  }

  @Test
  void aHeadThatWasWrongIsTakenWhenItIsRight() {
    RawQueue q = host.createQueue(1, 8, 8);
    q.ringHead(1);
    poll();
    assertThat(errors()).isEqualTo(1);
    host.execute(q, FLUSH);
    fill(q, 7);
    assertThat(errors()).isEqualTo(1);
  }

  @Test
  void aTailThatWasWrongIsTakenWhenItIsRight() {
    RawQueue q = host.createQueue(1, 8, 8);
    host.controller.faults().add(FaultRule.of(FaultRule.Action.STALL).onIo().nth(1).build());
    host.execute(q, FLUSH);
    q.push(FLUSH);
    q.push(FLUSH);
    q.push(FLUSH);
    q.ring();
    poll();
    q.ringTail(2);
    poll();
    assertThat(errors()).isEqualTo(1);
    host.controller.faults().clear();
    for (int i = 0; i < 3; i++) {
      host.next(q);
    }
    fill(q, 6);
    assertThat(q.tail).isEqualTo(2);
    assertThat(errors()).isEqualTo(1);
  }

  /** Announces this many commands at once, whose completions must fit without any being taken. */
  private void fill(RawQueue q, int commands) {
    for (int i = 0; i < commands; i++) {
      q.push(FLUSH);
    }
    q.ring();
    poll();
    for (int i = 0; i < commands; i++) {
      assertThat(q.poll()).as("completion %d", i).isNotNull();
    }
  }

  @Test
  void doorbellsOfQueuesThatDoNotExistAreNoticed() {
    RawQueue q = host.queueMemory(7, 8, 8);
    q.ringTail(1);
    q.ringHead(1);
    host.await(() -> errors() == 2, "two doorbell errors");
    host.adminOk(RawHost.createCq(7, 8, q.cq.busAddress(0), 1, 0));
    host.adminOk(RawHost.createSq(7, 8, q.sq.busAddress(0), 1, 7));
    host.execute(q, FLUSH);
    host.deleteQueue(q);
    q.ringTail(6);
    host.await(() -> errors() == 3, "another doorbell error");
    host.settle();
    assertThat(errors()).isEqualTo(3);
  }

  @Test
  void aNewQueueStartsAtZeroWhateverItsDoorbellSaid() {
    for (int round = 0; round < 3; round++) {
      RawQueue q = host.createQueue(1, 8, 8);
      for (int i = 0; i < 3; i++) {
        host.execute(q, FLUSH);
      }
      host.deleteQueue(q);
    }
    host.settle();
    assertThat(errors()).isZero();
  }

  @Test
  void identifiersInUseAreRefused() {
    FaultRule hang =
        FaultRule.of(FaultRule.Action.DROP).onIo(IoOpcode.FLUSH).executes(false).nth(1).build();
    host.controller.faults().add(hang);
    RawQueue q = host.createQueue(1, 8, 8);
    q.push(FLUSH, 9);
    q.push(FLUSH, 9);
    q.push(FLUSH, 10);
    q.ring();
    assertThat(host.next(q))
        .returns(9, RawQueue.Completion::cid)
        .satisfies(
            c -> assertThat(c.status() & 0x7FF).isEqualTo(StatusCode.COMMAND_ID_CONFLICT.status()));
    assertThat(host.next(q)).returns(10, RawQueue.Completion::cid).returns(0, c -> c.status());
    q.push(FLUSH, 9);
    q.ring();
    assertThat(host.next(q).status()).as("the first one still has it").isNotZero();
    assertThat(host.controller.stats().duplicateCids()).isEqualTo(2);
    assertThat(host.adminOk(RawHost.abort(1, 9))).isZero();
    assertThat(host.next(q)).returns(9, RawQueue.Completion::cid);
    host.execute(q, FLUSH);
    q.nextCid = 9;
    assertThat(host.execute(q, FLUSH).status()).isZero();
  }

  @Test
  void anyTrafficWorks() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    Random random = new Random(seed);
    int[][] sizes = {{8, 8}, {16, 5}, {5, 16}, {33, 7}};
    for (int[] size : sizes) {
      RawQueue q = host.createQueue(1, size[0], size[1]);
      Deque<Integer> expected = new ArrayDeque<>();
      for (int step = 0; step < 4000; step++) {
        String what = "seed " + seed + " sizes " + Arrays.toString(size) + " step " + step;
        // Every announced entry is fetched at once, unless very many completions are outstanding.
        int room = expected.size() < 500 ? size[0] : 1;
        for (int n = random.nextInt(room); n > 0; n--) {
          expected.add(q.push(FLUSH));
        }
        q.ring();
        poll();
        for (int n = random.nextInt(size[1]); n > 0; n--) {
          RawQueue.Completion c = q.take();
          if (c == null) {
            break;
          }
          assertThat(c.cid()).as(what).isEqualTo(expected.remove());
        }
        if (random.nextInt(3) != 0) {
          q.ringHead(q.head);
        }
        assertThat(errors()).as(what).isZero();
      }
      host.deleteQueue(q);
    }
  }

  @Test
  void aHostThatNeverConsumesIsHeldUp() {
    RawQueue q = host.createQueue(1, 64, 2);
    for (int i = 0; i < 3000; i++) {
      // Correct by the doorbell rules only as long as entries are fetched.
      q.push(FLUSH);
      q.ring();
      poll();
    }
    assertThat(host.controller.stats().commandsOn(1)).isBetween(1000L, 1200L);
    assertThat(host.csts().isSet(Csts.CFS)).isFalse();
    long before = host.controller.stats().commandsOn(1);
    for (int i = 0; i < 200; i++) {
      assertThat(host.next(q).status()).isZero();
    }
    assertThat(host.controller.stats().commandsOn(1)).isGreaterThan(before);
  }

  @Test
  void nothingIsFetchedFromAQueueDeletedInTheSamePass() {
    RawQueue q = host.createQueue(1, 8, 8);
    host.controller.faults().add(FaultRule.of(FaultRule.Action.STALL).onIo().nth(1).build());
    host.execute(q, FLUSH);
    q.push(FLUSH);
    q.push(FLUSH);
    q.ring();
    poll();
    host.controller.faults().clear();
    host.admin.push(RawHost.deleteSq(1));
    host.admin.ring();
    poll();
    assertThat(host.admin.poll().status()).isZero();
    assertThat(host.controller.stats().commandsOn(1)).isEqualTo(1);
    assertThat(q.poll()).isNull();
  }

  @Test
  void oneBusyQueueDoesNotStarveAnother() {
    RawQueue busy = host.createQueue(1, 1024, 1024);
    RawQueue other = host.createQueue(2, 8, 8);
    for (int i = 0; i < 1023; i++) {
      busy.push(FLUSH, i);
    }
    busy.ring();
    other.push(FLUSH);
    other.ring();
    poll();
    assertThat(other.poll()).isNotNull();
    List<Integer> done = new ArrayList<>();
    for (RawQueue.Completion c = busy.poll(); c != null; c = busy.poll()) {
      done.add(c.cid());
    }
    assertThat(done).hasSizeBetween(1, 512);
  }
}
