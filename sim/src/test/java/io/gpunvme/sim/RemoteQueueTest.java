package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Prp;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Queues in remote memory: how few copies they take, and what is special about them. What is not is
 * in {@link RemoteMemoryContractTest}.
 */
class RemoteQueueTest {
  private static final int CODE = 0x7FF;

  /** Longer than anything else in a test takes, in the device's time. */
  private static final int LONG = 1_000;

  private static final MemorySegment FLUSH = RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0);

  private final RawHost host =
      RawHost.start(SimConfig.builder().workers(0).latencyNanos(0).contiguousQueues(false).build());

  @AfterEach
  void close() {
    host.gpu.release();
    host.close();
  }

  private void flushes(RawQueue q, int count) {
    for (int i = 0; i < count; i++) {
      q.push(FLUSH);
    }
    q.ring();
  }

  private int take(RawQueue q) {
    int n = 0;
    while (q.poll() != null) {
      n++;
    }
    return n;
  }

  @Test
  void aBurstIsOneReadAndItsCompletionsOneWrite() {
    RawQueue q = host.createRemoteQueue(1, 64, 64);
    flushes(q, 32);
    host.controller.poll();
    assertThat(host.gpu.reads()).isEqualTo(1);
    assertThat(host.gpu.startedWrites()).isEqualTo(1);
    assertThat(take(q)).isEqualTo(32);
    flushes(q, 40);
    host.controller.poll();
    host.controller.poll();
    assertThat(host.gpu.reads()).as("at the ring's end there is another one").isEqualTo(3);
    assertThat(host.gpu.startedWrites())
        .as("32 in the first pass, 8 in the second, round the end")
        .isEqualTo(3);
    assertThat(take(q)).isEqualTo(40);
    host.controller.poll();
    assertThat(host.gpu.reads()).as("nothing to fetch").isEqualTo(3);
    assertThat(host.gpu.startedWrites()).as("nothing to post").isEqualTo(3);
  }

  @Test
  void oneReadFetchesNotMoreThanIsAnnounced() {
    RawQueue q = host.createRemoteQueue(1, 1024, 1024);
    q.sq.memory().fill((byte) 0xFF);
    flushes(q, 600);
    for (int i = 0; i < 30; i++) {
      host.controller.poll();
    }
    assertThat(take(q)).isEqualTo(600);
    assertThat(host.gpu.reads()).isEqualTo(3);
    assertThat(host.controller.stats().failed()).isZero();
  }

  @Test
  void entriesAnnouncedLaterAreNotMissed() {
    RawQueue q = host.createRemoteQueue(1, 8, 8);
    for (int i = 1; i < 200; i++) {
      flushes(q, 1 + i % 7);
      host.controller.poll();
      assertThat(take(q)).as("round " + i).isEqualTo(1 + i % 7);
    }
  }

  @Test
  void dataIsThereBeforeTheCompletionEvenInTheSameMemory() {
    RawQueue q = host.createRemoteQueue(1, 8, 8);
    DmaBuffer data = host.remoteBuffer(4096);
    data.memory().fill((byte) 0x55);
    host.gpu.hold(512);
    q.push(RawHost.io(IoOpcode.READ, 1, 0, 8, data.busAddress(0), 0));
    flushes(q, 1);
    for (int i = 0; i < 20; i++) {
      host.gpu.tick();
      host.controller.poll();
    }
    assertThat(q.poll()).as("the flush").isNotNull();
    assertThat(q.poll()).isNull();
    assertThat(data.memory().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 0x55);
    host.gpu.release();
    host.controller.poll();
    assertThat(q.poll().status()).isZero();
    assertThat(data.memory().get(ValueLayout.JAVA_BYTE, 0)).isZero();
  }

  /** Completions on their way when the next ones are written. */
  @Test
  void completionsMayTakeTheirTime() {
    RawQueue q = host.createRemoteQueue(1, 16, 16);
    host.gpu.delay(() -> 5);
    int got = 0;
    for (int i = 0; i < 400; i++) {
      if (i % 2 == 0) {
        flushes(q, 1);
      }
      host.controller.poll();
      host.gpu.tick();
      got += take(q);
    }
    assertThat(got).isBetween(190, 200);
  }

  /** Commands that hang, in a queue whose completions take a long time to arrive. */
  private RawQueue hanging(int count) {
    RawQueue q = host.createRemoteQueue(1, 8, 8);
    host.controller
        .faults()
        .add(FaultRule.of(FaultRule.Action.DROP).onIo().executes(false).build());
    flushes(q, count);
    host.controller.poll();
    host.controller.faults().clear();
    host.gpu.delay(() -> LONG);
    return q;
  }

  @Test
  void deletedCommandsAreCompletedBeforeTheDeletionIs() {
    RawQueue q = hanging(5);
    host.admin.push(RawHost.deleteSq(1));
    host.admin.ring();
    host.controller.poll();
    assertThat(host.admin.poll().status()).isZero();
    assertThat(take(q)).isEqualTo(5);
  }

  @Test
  void anAbortedCommandIsCompletedBeforeTheAbortIs() {
    RawQueue q = hanging(1);
    host.admin.push(RawHost.abort(1, 1));
    host.admin.ring();
    host.controller.poll();
    assertThat(host.admin.poll()).returns(0, c -> c.status()).returns(0, c -> c.dw0());
    assertThat(take(q)).isEqualTo(1);
  }

  @Test
  void aResetWaitsForCompletionsOnTheirWay() {
    RawQueue q = host.createRemoteQueue(1, 8, 8);
    host.gpu.delay(() -> LONG);
    flushes(q, 3);
    host.controller.poll();
    assertThat(host.gpu.underWay()).isEqualTo(1);
    assertThat(q.peek()).isNull();
    host.disable();
    assertThat(host.gpu.underWay()).isZero();
    assertThat(take(q)).isEqualTo(3);
  }

  @Test
  void aDeletedQueueIsNotWrittenAnyMore() {
    RawQueue q = host.createRemoteQueue(1, 8, 8);
    host.gpu.delay(() -> LONG);
    flushes(q, 3);
    host.controller.poll();
    host.adminOk(RawHost.deleteSq(1));
    host.adminOk(RawHost.deleteCq(1));
    assertThat(host.gpu.underWay()).isZero();
    assertThat(take(q)).isEqualTo(3);
  }

  @Test
  void anInterruptComesAfterTheEntry() {
    RawQueue q = host.queueMemory(1, 8, 8, true);
    host.adminOk(RawHost.createCq(1, 8, q.cq.busAddress(0), 3, 0));
    host.adminOk(RawHost.createSq(1, 8, q.sq.busAddress(0), 1, 1));
    host.gpu.delay(() -> LONG);
    List<Boolean> seen = new ArrayList<>();
    host.controller.interruptSink(
        new InterruptSink() {
          @Override
          public void message(int vector, long address, int data) {}

          @Override
          public void level(boolean asserted) {
            if (asserted) {
              seen.add(q.peek() != null);
            }
          }
        });
    flushes(q, 2);
    host.controller.poll();
    assertThat(seen).containsExactly(true);
  }

  /** A torn entry must not bring back what the host has marked as taken. */
  @Test
  void aTornEntryLeavesItsOtherWordsAlone() {
    RawQueue q = host.createRemoteQueue(1, 8, 8);
    for (int i = 0; i < 8; i++) {
      host.execute(q, FLUSH);
    }
    long at = q.head * 16L;
    MemorySegment cq = q.cq.memory();
    cq.set(ValueLayout.JAVA_LONG, at, 0x1234_5678_9ABC_DEF0L);
    cq.set(ValueLayout.JAVA_INT, at + 8, 0xFFFF_FFFF);
    long later = 3_600_000_000_000L;
    host.controller
        .faults()
        .add(FaultRule.of(FaultRule.Action.TORN).onIo().nanos(later).nth(1).build());
    flushes(q, 1);
    host.controller.poll();
    assertThat(q.peek()).isNotNull();
    assertThat(cq.get(ValueLayout.JAVA_LONG, at)).isEqualTo(0x1234_5678_9ABC_DEF0L);
    assertThat(cq.get(ValueLayout.JAVA_INT, at + 8)).isEqualTo(0xFFFF_FFFF);
  }

  @Test
  void aTornEntryDoesNotOvertakeThoseBeforeIt() {
    RawQueue q = host.createRemoteQueue(1, 8, 8);
    host.controller
        .faults()
        .add(FaultRule.of(FaultRule.Action.TORN).onIo().nanos(1).nth(3).build());
    flushes(q, 4);
    host.controller.poll();
    assertThat(take(q)).isEqualTo(4);
    host.await(() -> q.cq.memory().get(ValueLayout.JAVA_SHORT, 42) == 1, "the rest of the entry");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aQueueLiesInOneRegion(boolean firstIsRemote) {
    DmaBuffer local = host.buffer(4096);
    DmaBuffer remote = host.remoteBuffer(4096);
    DmaBuffer other = host.remoteBuffer(4096);
    DmaBuffer list = host.remoteBuffer(4096);
    DmaBuffer[][] wrong =
        firstIsRemote
            ? new DmaBuffer[][] {{remote, local}, {remote, other}}
            : new DmaBuffer[][] {{local, remote}};
    for (DmaBuffer[] pages : wrong) {
      Prp.put(list.memory(), 0, pages[0].busAddress(0));
      Prp.put(list.memory(), 8, pages[1].busAddress(0));
      int status = host.admin(RawHost.createCq(1, 512, list.busAddress(0), 0, 0)).status();
      assertThat(status & CODE).isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
    }
  }

  @Test
  void aQueueInPagesOfOneRegion() {
    DmaBuffer pages = host.remoteBuffer(8 * 4096);
    DmaBuffer list = host.remoteBuffer(4096);
    // The rings as the host sees them are put together from these pages, last page first.
    RawQueue q = host.queueMemory(1, 128, 512, true);
    long[] sq = {5 * 4096, 1 * 4096};
    long[] cq = {7 * 4096, 2 * 4096};
    for (int i = 0; i < 2; i++) {
      Prp.put(list.memory(), i * 8L, pages.busAddress(cq[i]));
      Prp.put(list.memory(), 64 + i * 8L, pages.busAddress(sq[i]));
    }
    host.adminOk(RawHost.createCq(1, 512, list.busAddress(0), 0, 0));
    assertThat(host.admin(RawHost.createSq(1, 128, list.busAddress(64), 0, 1)).status())
        .as("a list that does not start at a page")
        .isNotZero();
    Prp.put(list.memory(), 0, pages.busAddress(sq[0]));
    Prp.put(list.memory(), 8, pages.busAddress(sq[1]));
    host.adminOk(RawHost.createSq(1, 128, list.busAddress(0), 0, 1));
    int completed = 0;
    for (int round = 0; round < 40; round++) {
      for (int i = 0; i < 50; i++) {
        int slot = q.tail;
        q.push(FLUSH, round * 50 + i);
        MemorySegment.copy(
            q.sq.memory(), slot * 64L, pages.memory(), sq[slot / 64] + slot % 64 * 64L, 64);
      }
      q.ring();
      host.controller.poll();
      host.controller.poll();
      for (int i = 0; i < 50; i++) {
        int slot = q.head;
        MemorySegment.copy(
            pages.memory(), cq[slot / 256] + slot % 256 * 16L, q.cq.memory(), slot * 16L, 16);
        RawQueue.Completion c = q.poll();
        assertThat(c).as("completion " + completed).isNotNull();
        assertThat(c.cid()).isEqualTo(completed);
        completed++;
      }
    }
    assertThat(host.controller.stats().doorbellErrors()).isZero();
  }

  /** Another region at the same address is not the queue's memory. */
  @Test
  void aQueueDoesNotMoveToOtherMemory() {
    RawQueue q = host.createRemoteQueue(1, 8, 8);
    host.execute(q, FLUSH);
    q.cq.range().close();
    flushes(q, 1);
    host.controller.poll();
    assertThat(host.csts().isSet(Csts.CFS)).isTrue();
    assertThat(host.controller.fatalReason()).contains("completion queue 1 is not mapped");
    host.disable();
    host.enable();
    host.execute(host.createRemoteQueue(1, 8, 8), FLUSH);
  }

  /** Completions must not be lost in silence: whoever waits for them would wait for ever. */
  @Test
  void aQueueUnmappedBeforeItsCompletionsAreSentIsFatal() {
    RawQueue first = host.createRemoteQueue(1, 8, 8);
    RawQueue second = host.createRemoteQueue(2, 8, 8);
    host.execute(first, FLUSH);
    flushes(first, 1);
    flushes(second, 1);
    host.gpu.atNextRead(() -> host.gpu.atNextRead(first.cq.range()::close));
    host.controller.poll();
    assertThat(host.csts().isSet(Csts.CFS)).isTrue();
    assertThat(host.controller.fatalReason()).contains("completion queue 1 is not mapped any more");
  }

  @Test
  void manyQueuesInARowNeedNoMoreMemoryThanOne() {
    RawQueue q = host.queueMemory(1, 64, 64, true);
    for (int round = 0; round < 50; round++) {
      host.adminOk(RawHost.createCq(1, 64, q.cq.busAddress(0), 1, 0));
      host.adminOk(RawHost.createSq(1, 64, q.sq.busAddress(0), 1, 1));
      q.cq.memory().fill((byte) 0);
      q.head = 0;
      q.tail = 0;
      q.phase = 1;
      host.execute(q, FLUSH);
      host.deleteQueue(q);
    }
    assertThat(host.gpu.bounces()).as("for the entries of either queue").isEqualTo(2);
  }
}
