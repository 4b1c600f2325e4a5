package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.memory.FakeBus;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.IoOpcode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;

/** The queue against a controller played by hand: the test writes the CQEs. */
abstract class QueuePairRig {
  static final long TIMEOUT = 1_000_000;

  final FakeBus bus = new FakeBus(false);
  final Arena arena = Arena.ofConfined();
  final MemorySegment doorbells = arena.allocate(4096, 4096);
  final ToldPoller poller = new ToldPoller();
  final List<String> seen = new ArrayList<>();
  final CompletionSink sink =
      (queue, slot, status) ->
          seen.add(queue.userData(slot) + ":" + status + ":" + queue.dw0(slot));
  private final List<QueuePair> open = new ArrayList<>();

  int qid = 3;
  MemorySegment sq = MemorySegment.NULL;
  MemorySegment cq = MemorySegment.NULL;
  int cqTail;
  int cqPhase = 1;

  @AfterEach
  void free() {
    open.forEach(QueuePair::close);
    arena.close();
  }

  QueuePair queue(int sqSize, int cqSize, int depth) {
    return queue(sqSize, cqSize, depth, DataPointerMode.PRP);
  }

  QueuePair queue(int sqSize, int cqSize, int depth, DataPointerMode mode) {
    List<MemorySegment> mapped = new ArrayList<>();
    QueuePair queue =
        new QueuePair(
            new QueuePairSpec(qid, sqSize, cqSize, depth, 0, 4096, 65536, mode, TIMEOUT),
            memory -> {
              mapped.add(memory);
              return bus.map(memory);
            },
            doorbells,
            poller);
    open.add(queue);
    sq = mapped.getFirst();
    cq = sq.asSlice(queue.cqBusAddress() - queue.sqBusAddress());
    return queue;
  }

  int submit(QueuePair queue, long userData) {
    return queue.submitIo(IoOpcode.WRITE_ZEROES, 1, 7, 1, 0, null, 0, 0, userData);
  }

  void post(QueuePair queue, int cid, int status, int dw0) {
    Cqe.put(cq, (long) cqTail * Cqe.SIZE, dw0, 0, 0, qid, cid, status, cqPhase);
    if (++cqTail == queue.cqSize()) {
      cqTail = 0;
      cqPhase ^= 1;
    }
  }

  int sqDoorbell() {
    return doorbells.get(ValueLayout.JAVA_INT, 2 * qid * 4);
  }

  int cqDoorbell() {
    return doorbells.get(ValueLayout.JAVA_INT, (2 * qid + 1) * 4);
  }
}
