package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Commands that wait: latency, order, Abort, deletion, reset. */
class QueueAbortTest {
  private static final long LATENCY = 1_000_000;
  private static final int CODE = 0x7FF;

  private final RawClock clock = new RawClock();
  private RawHost host = start(SimConfig.builder());

  private RawHost start(SimConfigBuilder builder) {
    SimConfig config = builder.workers(0).latencyNanos(LATENCY).build();
    RawHost started = RawHost.attach(SimulatedController.create(config, clock));
    started.enable();
    return started;
  }

  @AfterEach
  void close() {
    host.close();
  }

  private static java.lang.foreign.MemorySegment read(long slba, DmaBuffer to) {
    return RawHost.io(IoOpcode.READ, 1, slba, 1, to.busAddress(0), 0);
  }

  @Test
  void commandsExecuteWhenTheirTimeHasComeAndOverlap() {
    RawQueue q = host.createQueue(1, 64, 64);
    DmaBuffer data = host.buffer(4096);
    data.memory().fill((byte) 7);
    for (int i = 0; i < 10; i++) {
      q.push(read(i, data));
    }
    q.ring();
    host.poll();
    clock.advance(LATENCY - 1);
    host.poll();
    assertThat(q.peek()).isNull();
    assertThat(data.memory().get(ValueLayout.JAVA_BYTE, 0)).as("moved early").isEqualTo((byte) 7);
    clock.advance(1);
    host.poll();
    for (int i = 0; i < 10; i++) {
      assertThat(q.poll()).as("command " + i).isNotNull();
    }
    assertThat(data.memory().get(ValueLayout.JAVA_BYTE, 0)).isZero();
  }

  @Test
  void orderIsKeptByDefault() {
    RawQueue q = host.createQueue(1, 256, 256);
    List<Integer> pushed = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      pushed.add(q.push(RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0)));
      q.ring();
      host.poll();
      clock.advance(i % 3);
    }
    clock.advance(LATENCY);
    assertThat(drain(q)).isEqualTo(pushed);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2})
  void orderMayBeShuffled(long seed) {
    host.close();
    List<List<Integer>> runs = new ArrayList<>();
    for (int run = 0; run < 2; run++) {
      host = start(SimConfig.builder().outOfOrder(true).seed(seed));
      RawQueue q = host.createQueue(1, 256, 256);
      for (int i = 0; i < 200; i++) {
        q.push(RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0));
      }
      q.ring();
      while (host.controller.stats().commandsOn(1) < 200) {
        host.poll();
      }
      clock.advance(10 * LATENCY);
      runs.add(drain(q));
      if (run == 0) {
        host.close();
      }
    }
    assertThat(runs.get(0)).hasSize(200).doesNotHaveDuplicates();
    assertThat(runs.get(0)).isNotEqualTo(runs.get(0).stream().sorted().toList());
    assertThat(runs.get(1)).as("same seed, same order").isEqualTo(runs.get(0));
  }

  private List<Integer> drain(RawQueue q) {
    List<Integer> cids = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      host.poll();
      for (RawQueue.Completion c = q.poll(); c != null; c = q.poll()) {
        cids.add(c.cid());
      }
    }
    return cids;
  }

  @Test
  void abortEndsACommandThatHasNotBegun() {
    RawQueue q = host.createQueue(1, 8, 8);
    DmaBuffer data = host.buffer(4096);
    data.memory().fill((byte) 7);
    int cid = q.push(read(0, data));
    int other = q.push(RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0));
    q.ring();
    host.poll();
    assertThat(host.adminOk(RawHost.abort(1, cid))).isZero();
    assertThat(q.poll())
        .returns(cid, RawQueue.Completion::cid)
        .returns(StatusCode.ABORT_REQUESTED.status(), c -> c.status() & CODE);
    clock.advance(LATENCY);
    host.poll();
    assertThat(q.poll()).returns(other, RawQueue.Completion::cid);
    assertThat(q.poll()).isNull();
    assertThat(data.memory().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 7);
    assertThat(host.adminOk(RawHost.abort(1, cid))).as("nothing to abort").isEqualTo(1);
  }

  @Test
  void abortOfWhatIsNotThereSucceedsWithoutEffect() {
    assertThat(host.adminOk(RawHost.abort(1, 5))).isEqualTo(1);
    assertThat(host.adminOk(RawHost.abort(0, 5))).isEqualTo(1);
    assertThat(host.adminOk(RawHost.abort(0xFFFF, 5))).isEqualTo(1);
    RawQueue q = host.createQueue(1, 8, 8);
    int cid = q.push(RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0));
    q.ring();
    host.poll();
    assertThat(host.adminOk(RawHost.abort(1, cid + 1))).isEqualTo(1);
    assertThat(host.adminOk(RawHost.abort(2, cid))).isEqualTo(1);
    clock.advance(LATENCY);
    host.poll();
    assertThat(q.poll()).returns(0, RawQueue.Completion::status);
  }

  @Test
  void aborts() {
    host.close();
    FaultRule slow =
        FaultRule.of(FaultRule.Action.DELAY).onAdmin(AdminOpcode.ABORT).nanos(LATENCY).build();
    host = start(SimConfig.builder().acl(1).fault(slow));
    for (int i = 0; i < 3; i++) {
      host.admin.push(RawHost.abort(1, i), 100 + i);
    }
    host.admin.ring();
    host.poll();
    clock.advance(LATENCY);
    host.poll();
    assertThat(host.admin.poll())
        .returns(100, RawQueue.Completion::cid)
        .returns(StatusCode.ABORT_LIMIT_EXCEEDED.status(), c -> c.status() & CODE);
    assertThat(host.admin.poll()).returns(101, c -> c.cid()).returns(0, c -> c.status());
    assertThat(host.admin.poll()).returns(102, c -> c.cid()).returns(0, c -> c.status());
  }

  @Test
  void deletingASubmissionQueueCompletesItsCommandsFirst() {
    RawQueue q = host.createQueue(1, 8, 16);
    Set<Integer> waiting = new HashSet<>();
    for (int i = 0; i < 5; i++) {
      waiting.add(q.push(RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0)));
    }
    q.ring();
    host.poll();
    host.adminOk(RawHost.deleteSq(1));
    for (int i = 0; i < 5; i++) {
      RawQueue.Completion c = q.poll();
      assertThat(c.status() & CODE).isEqualTo(StatusCode.ABORTED_SQ_DELETION.status());
      assertThat(waiting.remove(c.cid())).isTrue();
    }
    assertThat(waiting).isEmpty();
    host.adminOk(RawHost.deleteCq(1));
    clock.advance(LATENCY);
    host.poll();
    RawQueue again = host.createQueue(1, 8, 8);
    again.push(RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0));
    again.ring();
    host.poll();
    clock.advance(LATENCY);
    host.poll();
    assertThat(again.poll()).isNotNull();
  }

  @Test
  void deletingAQueueSaysNothingOfWhatIsOver() {
    RawQueue q = host.createQueue(1, 16, 4);
    int ended = 0;
    for (int round = 0; round < 4; round++) {
      for (int i = 0; i < 10; i++) {
        q.push(RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0));
      }
      q.ring();
      host.poll();
      clock.advance(LATENCY);
      ended += drain(q).size();
    }
    assertThat(ended).isEqualTo(40);
    host.adminOk(RawHost.deleteSq(1));
    assertThat(q.poll()).isNull();
    assertThat(host.controller.internalError()).isNull();
  }

  @Test
  void completionsHeldBackGoWithTheirQueue() {
    RawQueue q = host.createQueue(1, 16, 3);
    for (int i = 0; i < 10; i++) {
      q.push(RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0));
    }
    q.ring();
    host.poll();
    clock.advance(LATENCY);
    host.poll();
    host.adminOk(RawHost.deleteSq(1));
    q.poll();
    host.poll();
    assertThat(q.take()).isNotNull();
    assertThat(q.take()).as("posted when there was room").isNotNull();
    assertThat(q.take()).isNull();
    host.adminOk(RawHost.deleteCq(1));
    RawQueue again = host.createQueue(1, 16, 16);
    for (int i = 0; i < 15; i++) {
      again.push(RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0));
    }
    again.ring();
    host.poll();
    clock.advance(LATENCY);
    host.poll();
    assertThat(drain(again)).hasSize(15);
  }

  @Test
  void resetAbandonsEverything() {
    RawQueue q = host.createQueue(1, 64, 4);
    DmaBuffer data = host.buffer(4096);
    for (int round = 0; round < 3; round++) {
      data.memory().fill((byte) 7);
      for (int i = 0; i < 20; i++) {
        q.push(read(i, data));
      }
      q.ring();
      host.poll();
      if (round == 1) {
        clock.advance(LATENCY);
        host.poll();
        data.memory().fill((byte) 7);
      }
      host.disable();
      q.cq.memory().fill((byte) 0);
      clock.advance(LATENCY);
      host.poll();
      assertThat(q.cq.memory().mismatch(java.lang.foreign.MemorySegment.ofArray(new byte[64])))
          .isEqualTo(64);
      assertThat(data.memory().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 7);
      host.enable();
      q = host.createQueue(1, 64, 4);
    }
  }
}
