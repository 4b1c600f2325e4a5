package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.Mmio;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Drives an external queue pair as a kernel on a GPU would: stores to plain memory and to the peer
 * window of BAR0, nothing shared with {@link QueuePair}. CIDs count up from 0.
 */
final class ForeignDriver {
  private static final long PATIENCE_NANOS = 30_000_000_000L;

  /** A completion. */
  record Done(int cid, int status, int sqid) {}

  private final ExternalQueuePair pair;
  private final MemorySegment sq;
  private final MemorySegment cq;
  private final MemorySegment sqDoorbell;
  private final MemorySegment cqDoorbell;
  private int tail;
  private int head;
  private int phase = 1;
  private int nextCid;

  ForeignDriver(NvmeController controller, ExternalQueuePair pair, HostRings rings) {
    this(controller, pair, rings.sq(), rings.cq());
  }

  /** With rings that may lie anywhere. */
  ForeignDriver(
      NvmeController controller, ExternalQueuePair pair, MemorySegment sq, MemorySegment cq) {
    this.pair = pair;
    this.sq = sq;
    this.cq = cq;
    Bar bar = controller.function().bar(0);
    this.sqDoorbell = bar.peerMemory(pair.sqDoorbellOffset(), Integer.BYTES);
    this.cqDoorbell = bar.peerMemory(pair.cqDoorbellOffset(), Integer.BYTES);
  }

  /** Begins again with rings that were emptied. */
  void restart() {
    tail = 0;
    head = 0;
    phase = 1;
  }

  /**
   * Writes a command for one block; {@link #ring} makes the controller see it.
   *
   * @return its CID
   */
  int submit(int opcode, int nsid, long slba, long bus) {
    int cid = nextCid++ & 0xFFFF;
    long at = (long) tail * Sqe.SIZE;
    int cdw0 = Sqe.cdw0(opcode, 0, cid);
    Sqe.put(sq, at, cdw0, nsid, 0, bus, 0, (int) slba, (int) (slba >>> 32), 0, 0, 0, 0);
    tail = (tail + 1) % pair.sqSize();
    return cid;
  }

  /** Reads of LBA 0, 1, … into consecutive blocks, announced together. */
  void read(int count, int nsid, int blockSize, long bus) {
    for (int i = 0; i < count; i++) {
      submit(IoOpcode.READ, nsid, i, bus + (long) i * blockSize);
    }
    ring();
  }

  void ring() {
    // The controller is the other side: the SQEs first.
    Mmio.store32(sqDoorbell, 0, tail);
  }

  /** Everything that has completed; the entries go back to the controller. */
  List<Done> poll() {
    List<Done> done = new ArrayList<>();
    while (true) {
      long at = (long) head * Cqe.SIZE;
      int dw3 = Cqe.dw3Acquire(cq, at);
      if (Cqe.phase(dw3) != phase) {
        break;
      }
      done.add(new Done(Cqe.cid(dw3), Cqe.status(dw3), Cqe.sqid(cq, at)));
      if (++head == pair.cqSize()) {
        head = 0;
        phase ^= 1;
      }
    }
    if (!done.isEmpty()) {
      Mmio.store32(cqDoorbell, 0, head);
    }
    return done;
  }

  /** Polls until {@code count} commands have completed, or more. */
  List<Done> await(int count) {
    List<Done> done = new ArrayList<>();
    Backoff backoff = new Backoff();
    long start = System.nanoTime();
    while (done.size() < count) {
      List<Done> some = poll();
      done.addAll(some);
      assertThat(System.nanoTime() - start)
          .as("%s: %d of %d completions", pair, done.size(), count)
          .isLessThan(PATIENCE_NANOS);
      if (some.isEmpty()) {
        backoff.pause();
      }
    }
    assertThat(done).allMatch(d -> d.sqid() == pair.qid());
    return done;
  }

  /** Runs so many one-block reads of LBA 0, at most {@code depth} at once, that the rings wrap. */
  void run(int commands, int depth, int nsid, long bus) {
    int sent = 0;
    int done = 0;
    Backoff backoff = new Backoff();
    long start = System.nanoTime();
    while (done < commands) {
      int before = sent;
      while (sent < commands && sent - done < depth) {
        submit(IoOpcode.READ, nsid, 0, bus);
        sent++;
      }
      if (sent > before) {
        ring();
      }
      List<Done> some = poll();
      for (Done d : some) {
        assertThat(d.status()).as("command %d on %s", d.cid(), pair).isZero();
        done++;
      }
      if (some.isEmpty()) {
        backoff.pause();
      } else {
        backoff.reset();
      }
      assertThat(System.nanoTime() - start)
          .as("%s: %d of %d commands", pair, done, commands)
          .isLessThan(PATIENCE_NANOS);
    }
  }
}
