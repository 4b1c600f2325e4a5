package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import org.junit.jupiter.api.Test;

/** Commands and queues that end otherwise than by a completion. */
class QueuePairRecoveryTest extends QueuePairRig {
  @Test
  void theOldestExpiredCommandIsNamedAndQuarantineKeepsItsSlot() {
    QueuePair queue = queue(4, 4, 2);
    int first = submit(queue, 1);
    queue.ring();
    while (System.nanoTime() % 1000 == 0) {
      Thread.onSpinWait();
    }
    int second = submit(queue, 2);
    queue.ring();
    long now = System.nanoTime();
    assertThat(queue.expired(now - 10 * TIMEOUT)).isEqualTo(-1);
    assertThat(queue.expired(now + 2 * TIMEOUT)).isEqualTo(first);
    queue.quarantine(first);
    queue.quarantine(first);
    assertThat(queue.quarantined()).isEqualTo(1);
    assertThat(queue.expired(now + 2 * TIMEOUT)).isEqualTo(second);
    assertThat(submit(queue, 3)).isEqualTo(-1);
    post(queue, queue.cid(first), 0, 0);
    queue.poll(sink);
    assertThat(queue.quarantined()).isZero();
    assertThat(seen).containsExactly("1:0:0");
    assertThat(submit(queue, 3)).isEqualTo(first);
  }

  @Test
  void failAllEndsEveryCommandAndRebuildStartsOver() {
    QueuePair queue = queue(4, 4, 3);
    int a = submit(queue, 1);
    submit(queue, 2);
    queue.ring();
    queue.quarantine(a);
    int oldCid = queue.cid(a);
    int status = StatusCode.ABORTED_BY_HOST.status();
    long[] latency = new long[1];
    assertThat(
            queue.failAll(
                status,
                (q, s, st) -> {
                  sink.completed(q, s, st);
                  latency[0] = q.latencyNanos(s);
                }))
        .isEqualTo(2);
    assertThat(latency[0]).isPositive();
    assertThat(queue.failAll(status, sink)).as("they are over").isZero();
    assertThat(seen).containsExactlyInAnyOrder("1:" + status + ":0", "2:" + status + ":0");
    assertThat(queue.inFlight()).isZero();
    assertThat(queue.quarantined()).isZero();
    queue.rebuild();
    cqTail = 0;
    cqPhase = 1;
    assertThat(submit(queue, 5)).isEqualTo(0);
    assertThat(queue.cid(0)).isNotEqualTo(oldCid);
    queue.ring();
    assertThat(sqDoorbell()).isEqualTo(1);
    post(queue, oldCid, 0, 0);
    post(queue, queue.cid(0), 0, 0);
    queue.poll(sink);
    assertThat(seen).hasSize(3).last().isEqualTo("5:0:0");
    assertThat(queue.stale()).isEqualTo(1);
  }

  @Test
  void rebuildForgetsWhateverTheQueueWasDoing() {
    QueuePair queue = queue(4, 4, 3);
    for (int i = 0; i < 5; i++) {
      int slot = submit(queue, i);
      queue.ring();
      post(queue, queue.cid(slot), 0, 0);
      queue.poll(sink);
    }
    queue.quarantine(submit(queue, 5));
    queue.ring();
    submit(queue, 6);
    queue.rebuild();
    cqTail = 0;
    cqPhase = 1;
    seen.clear();
    assertThat(queue.inFlight()).isZero();
    assertThat(queue.quarantined()).isZero();
    assertThat(queue.expired(Long.MAX_VALUE / 2)).isEqualTo(-1);
    assertThat(queue.failAll(1, sink)).isZero();
    assertThat(queue.poll(sink)).isZero();
    queue.ring();
    assertThat(queue.sqDoorbells()).as("nothing to announce").isEqualTo(6);
    int slot = submit(queue, 7);
    assertThat(Sqe.cid(sq, 0)).isEqualTo(queue.cid(slot));
    queue.ring();
    assertThat(sqDoorbell()).isEqualTo(1);
    post(queue, queue.cid(slot), 0, 3);
    assertThat(queue.poll(sink)).isEqualTo(1);
    assertThat(seen).containsExactly("7:0:3");
    assertThat(cqDoorbell()).isEqualTo(1);
  }

  @Test
  void dword0OfAFailedCommandIsZeroWhateverItsSlotHeldBefore() {
    QueuePair queue = queue(4, 4, 3);
    int slot = submit(queue, 1);
    queue.ring();
    post(queue, queue.cid(slot), 0, 99);
    queue.poll(sink);
    submit(queue, 2);
    queue.failAll(7, sink);
    assertThat(seen).containsExactly("1:0:99", "2:7:0");
  }

  @Test
  void aBrokenQueueTakesAndGivesNothingUntilRebuilt() {
    QueuePair queue = queue(4, 4, 3);
    int slot = submit(queue, 1);
    queue.ring();
    submit(queue, 2);
    queue.breakQueue();
    assertThat(queue.state()).isEqualTo(QueuePair.State.BROKEN);
    queue.ring();
    assertThat(sqDoorbell()).isEqualTo(1);
    assertThat(submit(queue, 3)).isEqualTo(-1);
    assertThat(queue.hasRoom()).isFalse();
    post(queue, queue.cid(slot), 0, 0);
    assertThat(queue.poll(sink)).isZero();
    queue.failAll(StatusCode.ABORTED_BY_HOST.status(), sink);
    queue.rebuild();
    assertThat(queue.state()).isEqualTo(QueuePair.State.READY);
    assertThat(queue.hasRoom()).isTrue();
  }

  @Test
  void useAfterCloseThrowsAndTheStateSaysSo() {
    QueuePair queue = queue(4, 4, 3);
    queue.close();
    queue.close();
    assertThat(queue.state()).isEqualTo(QueuePair.State.CLOSED);
    assertThatThrownBy(() -> submit(queue, 1)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> queue.poll(sink)).isInstanceOf(IllegalStateException.class);
    assertThat(bus.mapped()).isZero();
  }
}
