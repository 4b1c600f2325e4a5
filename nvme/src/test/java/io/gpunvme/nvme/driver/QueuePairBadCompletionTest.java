package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Completions that say no, come twice, come half, or belong to nobody; sinks that throw. */
class QueuePairBadCompletionTest extends QueuePairRig {
  @Test
  void aSecondCompletionOfTheSameCommandIsCountedAndIgnored() {
    QueuePair queue = queue(8, 8, 3);
    int slot = submit(queue, 1);
    queue.ring();
    int cid = queue.cid(slot);
    post(queue, cid, 0, 0);
    post(queue, cid, 0, 0);
    assertThat(queue.poll(sink)).isEqualTo(2);
    assertThat(seen).containsExactly("1:0:0");
    assertThat(queue.stale()).isEqualTo(1);
    assertThat(submit(queue, 2)).isEqualTo(slot);
    queue.ring();
    assertThat(queue.cid(slot)).isNotEqualTo(cid);
    post(queue, cid, 0, 0);
    assertThat(queue.poll(sink)).isEqualTo(1);
    assertThat(seen).containsExactly("1:0:0");
    assertThat(queue.stale()).isEqualTo(2);
    assertThat(queue.inFlight()).isEqualTo(1);
  }

  @Test
  void aCidNoSlotHasIsCountedAndIgnored() {
    QueuePair queue = queue(8, 8, 3);
    submit(queue, 1);
    queue.ring();
    post(queue, 3, 0, 0);
    post(queue, 0xFFFF, 0, 0);
    assertThat(queue.poll(sink)).isEqualTo(2);
    assertThat(seen).isEmpty();
    assertThat(queue.unknown()).isEqualTo(2);
    assertThat(queue.stale()).isZero();
  }

  @ParameterizedTest(name = "queue {0}")
  @ValueSource(ints = {0, 3})
  void aHalfWrittenEntryIsLeftUntilItIsWhole(int queueId) {
    qid = queueId;
    QueuePair queue = queue(4, 4, 3);
    // Several laps: the entry that lay there before must not make a half-written one look whole.
    for (int round = 0; round < 10; round++) {
      int slot = submit(queue, round);
      queue.ring();
      long at = (long) cqTail * Cqe.SIZE;
      // The word with the phase arrives before the words in front of it.
      cq.set(ValueLayout.JAVA_INT, at + 12, Cqe.dw3(queue.cid(slot), 0, cqPhase));
      assertThat(queue.poll(sink)).isZero();
      assertThat(queue.malformed()).isEqualTo(round + 1L);
      assertThat(seen).hasSize(round);
      assertThat(queue.cqDoorbells()).as("nothing was consumed").isEqualTo(round);
      post(queue, queue.cid(slot), 0, 40 + round);
      assertThat(queue.poll(sink)).isEqualTo(1);
      assertThat(seen).last().isEqualTo(round + ":0:" + (40 + round));
    }
  }

  @Test
  void statusBecomesAnExceptionThatNamesTheCommand() {
    QueuePair queue = queue(4, 4, 3);
    List<NvmeStatusException> failures = new ArrayList<>();
    int slot = queue.submitIo(IoOpcode.WRITE_ZEROES, 5, 99, 1, 0, null, 0, 0, 0);
    int cid = queue.cid(slot);
    queue.ring();
    post(queue, cid, StatusCode.LBA_OUT_OF_RANGE.dnr(), 0);
    queue.poll((q, s, status) -> failures.add(q.exception(s, status)));
    NvmeStatusException e = failures.getFirst();
    assertThat(e.status()).isEqualTo(StatusCode.LBA_OUT_OF_RANGE.dnr());
    assertThat(e.retryable()).isFalse();
    assertThat(e.qid()).isEqualTo(qid);
    assertThat(e.cid()).isEqualTo(cid);
    assertThat(e.nsid()).isEqualTo(5);
    assertThat(e.slba()).isEqualTo(99);
    assertThat(e.opcode()).isEqualTo(IoOpcode.WRITE_ZEROES);
    assertThat(e).hasMessageContaining("LBA 99").hasMessageContaining("queue 3");
  }

  @Test
  void aSinkThatThrowsLosesOnlyItsOwnCompletion() {
    QueuePair queue = queue(4, 4, 3);
    int a = submit(queue, 1);
    int b = submit(queue, 2);
    queue.ring();
    post(queue, queue.cid(a), 0, 0);
    post(queue, queue.cid(b), 0, 0);
    assertThatThrownBy(
            () ->
                queue.poll(
                    (q, s, st) -> {
                      throw new IllegalStateException("sink");
                    }))
        .hasMessage("sink");
    assertThat(cqDoorbell()).isEqualTo(1);
    assertThat(queue.inFlight()).isEqualTo(1);
    assertThat(queue.poll(sink)).isEqualTo(1);
    assertThat(seen).containsExactly("2:0:0");
    assertThat(cqDoorbell()).isEqualTo(2);
  }

  @Test
  void aFloodOfEntriesDoesNotHoldThePollerForEver() {
    QueuePair queue = queue(4, 4, 3);
    int slot = submit(queue, 1);
    queue.ring();
    int cid = queue.cid(slot);
    for (int i = 0; i < 4; i++) {
      post(queue, i == 0 ? cid : 3, 0, 0);
    }
    // While the first entry is looked at, a controller gone mad writes the next lap over all four.
    CompletionSink flooded =
        (q, s, st) -> {
          for (int i = 0; i < 4; i++) {
            post(queue, 3, 0, 0);
          }
        };
    assertThat(queue.poll(flooded)).isLessThanOrEqualTo(4);
  }
}
