package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.sim.FaultRule.Action;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What each fault does to a command, seen from the host, and that the next command works. */
class EngineFaultTest {
  private static final int CODE = 0x7FF;
  private static final long LATER = 5_000_000;
  private static final MemorySegment FLUSH = RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0);

  private final RawClock clock = new RawClock();
  private RawHost host;
  private RawQueue q;
  private DmaBuffer data;

  @BeforeEach
  void start() {
    start(0);
  }

  private void start(long latency) {
    SimConfig config = SimConfig.builder().workers(0).latencyNanos(latency).build();
    host = RawHost.attach(SimulatedController.create(config, clock));
    host.enable();
    q = host.createQueue(1, 16, 16);
    data = host.buffer(4096);
  }

  @AfterEach
  void close() {
    host.close();
  }

  private void fault(FaultRule.Builder rule) {
    host.controller.faults().add(rule.onIo().nth(1).build());
  }

  private MemorySegment write(int value) {
    data.memory().fill((byte) value);
    return RawHost.io(IoOpcode.WRITE, 1, 0, 8, data.busAddress(0), 0);
  }

  private int stored() {
    RawQueue.Completion c =
        host.execute(q, RawHost.io(IoOpcode.READ, 1, 0, 8, data.busAddress(0), 0));
    assertThat(c.status()).isZero();
    return data.memory().get(ValueLayout.JAVA_BYTE, 4095);
  }

  private int submit(MemorySegment sqe) {
    int cid = q.push(sqe);
    q.ring();
    host.poll();
    return cid;
  }

  private void later(long nanos) {
    clock.advance(nanos);
    host.poll();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aStatusReplacesSuccess(boolean executes) {
    fault(FaultRule.status(StatusCode.WRITE_FAULT).executes(executes));
    assertThat(host.execute(q, write(1)).status() & CODE)
        .isEqualTo(StatusCode.WRITE_FAULT.status());
    assertThat(stored()).isEqualTo(executes ? 1 : 0);
    assertThat(host.controller.stats().faults()).isEqualTo(1);
  }

  @Test
  void aStatusDoesNotHideARealOne() {
    fault(FaultRule.status(StatusCode.WRITE_FAULT).executes(true));
    int status = host.execute(q, RawHost.io(IoOpcode.READ, 1, 0, 8, 0x1000, 0)).status();
    assertThat(status & CODE).isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
  }

  @Test
  void aLostCompletionIsOverForTheController() {
    fault(FaultRule.of(Action.DROP));
    int cid = submit(write(2));
    later(LATER);
    assertThat(q.peek()).isNull();
    assertThat(host.adminOk(RawHost.abort(1, cid))).as("nothing to abort").isEqualTo(1);
    assertThat(stored()).isEqualTo(2);
  }

  @Test
  void aHangingCommandCanBeAborted() {
    fault(FaultRule.of(Action.DROP).executes(false));
    int cid = submit(write(2));
    later(LATER);
    assertThat(q.peek()).isNull();
    assertThat(host.adminOk(RawHost.abort(1, cid))).isZero();
    assertThat(host.next(q))
        .returns(cid, RawQueue.Completion::cid)
        .returns(StatusCode.ABORT_REQUESTED.status(), c -> c.status() & CODE);
    assertThat(stored()).isZero();
  }

  @Test
  void aHangingCommandEndsWithItsQueue() {
    fault(FaultRule.of(Action.DROP).executes(false));
    submit(write(2));
    host.adminOk(RawHost.deleteSq(1));
    assertThat(q.poll().status() & CODE).isEqualTo(StatusCode.ABORTED_SQ_DELETION.status());
  }

  @Test
  void aDelayedCommandExecutesLate() {
    fault(FaultRule.of(Action.DELAY).nanos(LATER));
    submit(write(3));
    data.memory().fill((byte) 4);
    later(LATER - 1);
    assertThat(q.peek()).isNull();
    later(1);
    assertThat(q.poll().status()).isZero();
    assertThat(stored()).isEqualTo(4);
  }

  @Test
  void anEarlyCompletionOvertakesTheData() {
    fault(FaultRule.of(Action.EARLY).nanos(LATER));
    int cid = submit(write(3));
    assertThat(q.poll())
        .returns(cid, RawQueue.Completion::cid)
        .returns(0, RawQueue.Completion::status);
    data.memory().fill((byte) 4);
    later(LATER - 1);
    assertThat(host.controller.stats().writtenBytes()).isZero();
    later(1);
    assertThat(q.peek()).as("completed once").isNull();
    assertThat(stored()).isEqualTo(4);
  }

  @Test
  void whatCompletedEarlyEndsWithItsQueueAndTwiceNever() {
    fault(FaultRule.of(Action.EARLY).nanos(LATER));
    submit(write(3));
    assertThat(q.poll().status()).isZero();
    host.adminOk(RawHost.deleteSq(1));
    later(LATER);
    assertThat(q.peek()).isNull();
    q = host.createQueue(2, 16, 16);
    assertThat(stored()).as("what did not execute in time never does").isZero();
  }

  @Test
  void aDelayComesOnTopOfTheLatency() {
    host.close();
    start(1000);
    fault(FaultRule.of(Action.DELAY).nanos(LATER));
    submit(write(3));
    later(LATER + 999);
    assertThat(q.peek()).isNull();
    later(1);
    assertThat(q.poll()).isNotNull();
  }

  @Test
  void aLateCompletionFollowsTheExecution() {
    fault(FaultRule.of(Action.LATE).nanos(LATER));
    int cid = submit(write(3));
    data.memory().fill((byte) 4);
    assertThat(stored()).as("others pass by").isEqualTo(3);
    assertThat(host.adminOk(RawHost.abort(1, cid))).as("too late to abort").isEqualTo(1);
    later(LATER - 1);
    assertThat(q.peek()).isNull();
    later(1);
    assertThat(q.poll()).returns(cid, c -> c.cid()).returns(0, c -> c.status());
  }

  @Test
  void aLateCompletionIsPostedBeforeItsQueueGoes() {
    fault(FaultRule.of(Action.LATE).nanos(LATER));
    int cid = submit(write(3));
    host.adminOk(RawHost.deleteSq(1));
    assertThat(q.poll()).returns(cid, c -> c.cid()).returns(0, c -> c.status());
    host.adminOk(RawHost.deleteCq(1));
    later(LATER);
  }

  @Test
  void aDuplicateComesTwice() {
    fault(FaultRule.of(Action.DUPLICATE));
    int cid = submit(write(3));
    RawQueue.Completion first = q.poll();
    assertThat(first.cid()).isEqualTo(cid);
    assertThat(q.poll()).isEqualTo(first);
    assertThat(q.poll()).isNull();
    assertThat(stored()).isEqualTo(3);
  }

  @Test
  void aWrongCid() {
    fault(FaultRule.of(Action.WRONG_CID).amount(0x8001));
    int cid = submit(write(3));
    assertThat(q.poll().cid()).isEqualTo(cid ^ 0x8001);
    assertThat(stored()).isEqualTo(3);
  }

  @Test
  void aBadQueueHead() {
    fault(FaultRule.of(Action.SQHD_BAD).amount(4711));
    submit(write(3));
    assertThat(q.poll().sqhd()).isEqualTo(4711);
    assertThat(stored()).isEqualTo(3);
  }

  @Test
  void aWrongPhaseIsInvisible() {
    fault(FaultRule.of(Action.WRONG_PHASE));
    int cid = submit(write(3));
    later(LATER);
    assertThat(q.peek()).isNull();
    assertThat(Cqe.cid(Cqe.dw3Acquire(q.cq.memory(), 0))).isEqualTo(cid);
    submit(FLUSH);
    assertThat(q.peek()).as("hides the ones behind").isNull();
    q.head = 1;
    assertThat(q.poll()).isNotNull();
    assertThat(stored()).isEqualTo(3);
  }

  @Test
  void aWrongPhaseMayHeal() {
    fault(FaultRule.of(Action.WRONG_PHASE).nanos(LATER));
    int cid = submit(write(3));
    later(LATER - 1);
    assertThat(q.peek()).isNull();
    later(1);
    assertThat(q.poll()).returns(cid, c -> c.cid());
    assertThat(stored()).isEqualTo(3);
  }

  @Test
  void aTornEntryShowsItsPhaseFirst() {
    q.cq.memory().fill((byte) 0);
    fault(FaultRule.of(Action.TORN).nanos(LATER));
    int cid = submit(write(3));
    RawQueue.Completion torn = q.peek();
    assertThat(torn).isEqualTo(new RawQueue.Completion(0, 0, 0, 0, cid, 0));
    later(LATER - 1);
    assertThat(q.peek()).isEqualTo(torn);
    later(1);
    assertThat(q.poll()).isEqualTo(new RawQueue.Completion(0, 0, 1, 1, cid, 0));
    assertThat(stored()).isEqualTo(3);
  }

  @ParameterizedTest
  @ValueSource(ints = {5, 15, 20})
  void aTornEntryMayBeAnywhere(int before) {
    for (int i = 0; i < before; i++) {
      host.execute(q, FLUSH);
    }
    fault(FaultRule.of(Action.TORN).nanos(LATER));
    int sqid = 7;
    q.cq.memory().set(ValueLayout.JAVA_SHORT, q.head * 16L + 10, (short) sqid);
    int cid = submit(write(3));
    assertThat(q.peek()).returns(sqid, c -> c.sqid()).returns(cid, c -> c.cid());
    later(LATER);
    assertThat(q.poll()).isEqualTo(new RawQueue.Completion(0, 0, q.tail, 1, cid, 0));
  }

  @Test
  void aTornEntryThatWasTakenIsLeftAlone() {
    host.execute(q, FLUSH);
    fault(FaultRule.of(Action.TORN).nanos(LATER));
    submit(write(3));
    q.poll();
    for (int i = 0; i < 16; i++) {
      host.execute(q, FLUSH);
    }
    byte[] before = q.cq.memory().toArray(ValueLayout.JAVA_BYTE);
    later(LATER);
    assertThat(q.cq.memory().mismatch(MemorySegment.ofArray(before))).isEqualTo(-1);
  }

  @Test
  void aTornEntryOfADeletedQueueIsForgotten() {
    fault(FaultRule.of(Action.TORN).nanos(LATER));
    submit(write(3));
    host.deleteQueue(q);
    byte[] before = q.cq.memory().toArray(ValueLayout.JAVA_BYTE);
    later(LATER);
    assertThat(q.cq.memory().mismatch(MemorySegment.ofArray(before))).isEqualTo(-1);
  }

  @Test
  void othersOvertakeAReorderedCompletion() {
    fault(FaultRule.of(Action.REORDER).amount(2));
    List<Integer> cids = new ArrayList<>();
    for (int i = 0; i < 5; i++) {
      cids.add(q.push(FLUSH));
    }
    q.ring();
    host.poll();
    host.poll();
    List<Integer> got = new ArrayList<>();
    for (RawQueue.Completion c = q.poll(); c != null; c = q.poll()) {
      got.add(c.cid());
    }
    assertThat(got).containsExactlyInAnyOrderElementsOf(cids);
    assertThat(got.indexOf(cids.get(0))).isGreaterThanOrEqualTo(2);
  }

  @Test
  void aReorderedCompletionDoesNotWaitForEver() {
    fault(FaultRule.of(Action.REORDER).amount(2));
    int cid = submit(FLUSH);
    later(999_999);
    assertThat(q.peek()).isNull();
    later(1);
    assertThat(q.poll()).returns(cid, c -> c.cid());
    host.execute(q, FLUSH);
  }

  @Test
  void aReorderedCompletionThatWaitsForRoomIsPostedOnce() {
    fault(FaultRule.of(Action.REORDER).amount(2));
    q = host.createQueue(2, 16, 2);
    int late = submit(FLUSH);
    int fills = submit(FLUSH);
    int next = submit(FLUSH);
    // Its time has come, and there is no room; then those before it overtake it.
    later(LATER);
    List<Integer> got = new ArrayList<>();
    for (int i = 0; i < 5; i++) {
      RawQueue.Completion c = q.poll();
      if (c != null) {
        got.add(c.cid());
      }
      later(LATER);
    }
    assertThat(got).containsExactly(fills, next, late);
    assertThat(host.execute(q, FLUSH).status()).isZero();
    assertThat(host.csts().isSet(Csts.CFS)).isFalse();
    host.disable();
  }

  @Test
  void aStalledQueueGoesOnAfterItsTime() {
    fault(FaultRule.of(Action.STALL).nanos(LATER));
    host.execute(q, FLUSH);
    submit(FLUSH);
    later(LATER - 1);
    assertThat(q.peek()).isNull();
    assertThat(host.adminOk(RawHost.abort(1, 1))).as("the admin queue works").isEqualTo(1);
    later(1);
    assertThat(q.poll()).isNotNull();
  }

  @Test
  void aStalledQueueGoesOnWithoutTheRule() {
    fault(FaultRule.of(Action.STALL).executes(false));
    int hung = submit(FLUSH);
    submit(FLUSH);
    later(1000 * LATER);
    assertThat(q.peek()).isNull();
    host.controller.faults().clear();
    host.poll();
    assertThat(q.poll()).isNotNull();
    assertThat(host.adminOk(RawHost.abort(1, hung))).isZero();
  }

  @Test
  void fatalStatusStopsEverythingUntilReset() {
    fault(FaultRule.of(Action.CFS));
    q.push(FLUSH);
    q.push(FLUSH);
    q.ring();
    host.poll();
    assertThat(host.csts().isSet(Csts.CFS)).isTrue();
    assertThat(host.csts().isSet(Csts.RDY)).isTrue();
    assertThat(host.controller.fatalReason()).contains("cfs");
    later(LATER);
    assertThat(q.peek()).isNull();
    host.disable();
    assertThat(host.csts().isSet(Csts.CFS)).isFalse();
    host.enable();
    q = host.createQueue(1, 8, 8);
    assertThat(stored()).isZero();
  }

  @Test
  void aDeviceCanVanish() {
    fault(FaultRule.of(Action.GONE));
    q.push(FLUSH);
    q.push(FLUSH);
    q.ring();
    host.poll();
    assertThat(host.csts().gone()).isTrue();
    later(LATER);
    assertThat(q.peek()).isNull();
    host.controller.reset();
    host.busMaster(true);
    host.resetAdmin();
    host.enable();
    q = host.createQueue(1, 8, 8);
    assertThat(stored()).isZero();
  }

  @Test
  void corruptedDataArrivesWithSuccess() {
    host.execute(q, write(0x55));
    fault(FaultRule.of(Action.CORRUPT).amount(3));
    MemorySegment read = RawHost.io(IoOpcode.READ, 1, 0, 8, data.busAddress(0), 0);
    assertThat(host.execute(q, read).status()).isZero();
    int flipped = 0;
    for (byte b : data.memory().toArray(ValueLayout.JAVA_BYTE)) {
      flipped += Integer.bitCount((b ^ 0x55) & 0xFF);
    }
    assertThat(flipped).isBetween(1, 3);
    assertThat(stored()).isEqualTo(0x55);
  }

  @Test
  void faultsMeetWhatIsInFlightAtReset() {
    FaultRule.Builder[] rules = {
      FaultRule.of(Action.DROP).executes(false),
      FaultRule.of(Action.DELAY).nanos(LATER),
      FaultRule.of(Action.LATE).nanos(LATER),
      FaultRule.of(Action.REORDER).amount(9),
      FaultRule.of(Action.TORN).nanos(LATER),
      FaultRule.of(Action.STALL)
    };
    for (FaultRule.Builder rule : rules) {
      host.controller.faults().add(rule.onIo().nth(1).build());
      for (int i = 0; i < 5; i++) {
        submit(FLUSH);
      }
      host.disable();
      host.controller.faults().clear();
      host.enable();
      q = host.createQueue(1, 16, 16);
      later(2 * LATER);
      assertThat(host.execute(q, FLUSH).status()).isZero();
      assertThat(q.poll()).isNull();
    }
  }
}
