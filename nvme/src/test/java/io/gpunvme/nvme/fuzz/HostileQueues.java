package io.gpunvme.nvme.fuzz;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Aqa;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.ToIntFunction;

/**
 * Stands between the host's queues and those of the embedded controller. Submission queues are
 * shared, but their doorbells pass through here; completions go to queues of our own, and from
 * there, after the {@link Malice} has seen them, into the host's.
 *
 * <p>One thread calls {@link #pass}; the lock is held while anything of the host's is touched.
 */
final class HostileQueues {
  private static final VarHandle INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();
  private static final int PAGE = 4096;
  private static final int QID = 0xFFFF;
  private static final int HISTORY = 16;
  private static final int NOBODYS_CID = 0xFFFF;

  /**
   * A command the host sent.
   *
   * @param prp1 where its data begins, or the queue it creates
   */
  record Command(int opcode, int nsid, int cdw10, int cdw11, long prp1) {}

  /** A queue pair; identifiers of both queues are equal, as our driver has it. */
  final class Pair {
    final int qid;
    final int cqSize;
    private final long cqBus;
    private final MemorySegment inbox;
    private int sqSize;
    private long sqBus;
    private int sqTail;
    private int inboxHead;
    private int inboxPhase = 1;
    private int tail;
    private int phase = 1;
    private final Map<Integer, Command> commands = new HashMap<>();
    private final int[] history = new int[HISTORY];
    private int completed;

    Pair(int qid, long cqBus, int cqSize) {
      this.qid = qid;
      this.cqBus = cqBus;
      this.cqSize = cqSize;
      inbox = inboxes.asSlice((long) qid * PAGE, PAGE).fill((byte) 0);
    }

    // ---- for the malice

    /** Whether the host has consumed all but {@code count} entries, as far as it says so. */
    boolean hasRoom(int count) {
      int head = (int) INT.getAcquire(doorbells, cqHead(qid));
      int used = (tail - head + cqSize) % cqSize;
      return head >= 0 && head < cqSize && used + count < cqSize;
    }

    /** The identifier of some command of this queue that completed a while ago; unused if none. */
    int finished(int which) {
      return completed == 0
          ? NOBODYS_CID
          : history[Integer.remainderUnsigned(which, Math.min(completed, HISTORY))];
    }

    /** Whether the host still waits for a command with this identifier. */
    boolean isOutstanding(int cid) {
      return commands.containsKey(cid);
    }

    /** Writes an entry where the host expects the next one, and moves on. */
    void post(int dw0, int dw1, int sqhd, int sqid, int cid, int status) {
      put(dw0, dw1, sqhd, sqid, cid, status, phase);
      advance();
    }

    private void advance() {
      if (++tail == cqSize) {
        tail = 0;
        phase ^= 1;
      }
    }

    /** Writes an entry with the wrong phase where the host expects the next one. */
    void glitch(int dw0, int sqid, int cid, int status) {
      put(dw0, 0, 0, sqid, cid, status, phase ^ 1);
    }

    /** Writes only dword 3 of the next entry, with the right phase. */
    void tear(int cid, int status) {
      MemorySegment cq = function.at(cqBus + (long) tail * Cqe.SIZE, Cqe.SIZE);
      if (cq != null) {
        INT.setRelease(cq, (long) Cqe.DW3, Cqe.dw3(cid, status, phase));
      }
    }

    /**
     * Fills the queue.
     *
     * @param rude with twice as many entries as there are, whether the host has consumed any or not
     * @param dw3 gives what goes into dword 3, without the phase tag
     */
    void flood(boolean rude, ToIntFunction<Pair> dw3) {
      MemorySegment cq = function.at(cqBus, (long) cqSize * Cqe.SIZE);
      int head = (int) INT.getAcquire(doorbells, cqHead(qid));
      int room = rude ? 2 * cqSize : cqSize - 1 - (tail - head + cqSize) % cqSize;
      for (int i = 0; i < room && cq != null; i++) {
        int word = dw3.applyAsInt(this);
        Cqe.put(cq, (long) tail * Cqe.SIZE, i, 0, 0, qid, Cqe.cid(word), Cqe.status(word), phase);
        advance();
      }
    }

    private void put(int dw0, int dw1, int sqhd, int sqid, int cid, int status, int tag) {
      MemorySegment cq = function.at(cqBus + (long) tail * Cqe.SIZE, Cqe.SIZE);
      if (cq != null) {
        Cqe.put(cq, 0, dw0, dw1, sqhd, sqid, cid, status, tag);
      }
    }

    // ---- from the host to the controller

    private boolean isRung() {
      return sqSize != 0 && (int) INT.getAcquire(doorbells, sqTail(qid)) != sqTail;
    }

    /** The identifier of an Asynchronous Event Request that nobody has answered yet, or -1. */
    int takeEventRequest() {
      for (Map.Entry<Integer, Command> e : commands.entrySet()) {
        if (qid == 0 && e.getValue().opcode() == AdminOpcode.ASYNC_EVENT_REQUEST) {
          commands.remove(e.getKey());
          return e.getKey();
        }
      }
      return -1;
    }

    private void forward() {
      function.progress();
      int now = (int) INT.getAcquire(doorbells, sqTail(qid));
      if (now < 0 || now >= sqSize) {
        return;
      }
      while (sqTail != now) {
        MemorySegment sqe = function.at(sqBus + (long) sqTail * Sqe.SIZE, Sqe.SIZE);
        if (sqe != null) {
          see(sqe);
        }
        sqTail = sqTail + 1 == sqSize ? 0 : sqTail + 1;
      }
      INT.setRelease(simDoorbells, sqTail(qid), now);
    }

    private void see(MemorySegment sqe) {
      int opcode = Sqe.opcode(sqe, 0);
      int cdw10 = Sqe.cdw10(sqe, 0);
      commands.put(
          Sqe.cid(sqe, 0),
          new Command(opcode, Sqe.nsid(sqe, 0), cdw10, Sqe.cdw11(sqe, 0), Sqe.dptr1(sqe, 0)));
      if (qid == 0 && opcode == AdminOpcode.CREATE_IO_CQ && (cdw10 & QID) < pairs.length) {
        // The entry is in the host's memory, but nobody looks at it again.
        Sqe.dptr1(sqe, 0, bounce(cdw10 & QID));
      }
    }

    // ---- from the controller to the host

    private void deliver() {
      while (true) {
        long at = (long) inboxHead * Cqe.SIZE;
        int dw3 = Cqe.dw3Acquire(inbox, at);
        if (Cqe.phase(dw3) != inboxPhase) {
          return;
        }
        if (++inboxHead == cqSize) {
          inboxHead = 0;
          inboxPhase ^= 1;
        }
        INT.setRelease(simDoorbells, cqHead(qid), inboxHead);
        Command command = commands.remove(Cqe.cid(dw3));
        if (command != null) {
          if (qid == 0 && Cqe.status(dw3) == 0) {
            learn(command);
          }
          malice.complete(
              this,
              command,
              Cqe.dw0(inbox, at),
              Cqe.sqhd(inbox, at),
              Cqe.cid(dw3),
              Cqe.status(dw3));
          history[completed++ % HISTORY] = Cqe.cid(dw3);
        }
      }
    }
  }

  /** Fair, or a flood would starve the host's register writes. */
  final ReentrantLock lock = new ReentrantLock(true);

  private final HostileFunction function;
  private final SimulatedController sim;
  private final Malice malice;
  private final int dstrd;
  private final MemorySegment doorbells;
  private final MemorySegment simDoorbells;
  private final MemorySegment inboxes;
  private final BusRange inboxRange;
  private final Pair[] pairs;

  HostileQueues(HostileFunction function, SimulatedController sim, Malice malice) {
    this.function = function;
    this.sim = sim;
    this.malice = malice;
    dstrd = new Cap(sim.bar(0).read64(Registers.CAP)).get(Cap.DSTRD);
    pairs = new Pair[sim.simConfig().ioQueues() + 1];
    long bytes = Registers.sqTailDoorbell(pairs.length, dstrd) - Registers.DOORBELLS;
    simDoorbells = sim.bar(0).memory(Registers.DOORBELLS, bytes);
    doorbells = Arena.ofAuto().allocate(sim.bar(0).size() - Registers.DOORBELLS, PAGE);
    inboxes = Arena.ofAuto().allocate((long) pairs.length * PAGE, PAGE);
    inboxRange = sim.map(inboxes);
  }

  private long sqTail(int qid) {
    return Registers.sqTailDoorbell(qid, dstrd) - Registers.DOORBELLS;
  }

  private long cqHead(int qid) {
    return Registers.cqHeadDoorbell(qid, dstrd) - Registers.DOORBELLS;
  }

  /** What the host believes to be the doorbells. */
  MemorySegment doorbells(long offset, long bytes) {
    if (offset < 0 || bytes < 0 || offset > doorbells.byteSize() - bytes) {
      throw new InvalidRequestException("that part of BAR0 is not mapped");
    }
    return doorbells.asSlice(offset, bytes);
  }

  /** Where the controller posts the completions of a queue. */
  long bounce(int qid) {
    return inboxRange.busAddress((long) qid * PAGE);
  }

  /** The controller forgets its queues. */
  void forget() {
    Arrays.fill(pairs, null);
    doorbells.fill((byte) 0);
    malice.forget();
  }

  /** The controller is enabled: there is an admin queue. */
  void enable(int aqa, long sqBus, long cqBus) {
    Aqa sizes = new Aqa(aqa);
    Pair admin = new Pair(0, cqBus, sizes.get(Aqa.ACQS) + 1);
    admin.sqBus = sqBus;
    admin.sqSize = sizes.get(Aqa.ASQS) + 1;
    pairs[0] = admin;
  }

  private void learn(Command c) {
    int qid = c.cdw10() & QID;
    switch (c.opcode()) {
      case AdminOpcode.CREATE_IO_CQ -> {
        INT.setRelease(doorbells, cqHead(qid), 0);
        pairs[qid] = new Pair(qid, c.prp1(), (c.cdw10() >>> 16) + 1);
      }
      case AdminOpcode.CREATE_IO_SQ -> {
        if (pairs[qid] == null) {
          return;
        }
        INT.setRelease(doorbells, sqTail(qid), 0);
        pairs[qid].sqTail = 0;
        pairs[qid].sqBus = c.prp1();
        pairs[qid].sqSize = (c.cdw10() >>> 16) + 1;
      }
      case AdminOpcode.DELETE_IO_SQ -> {
        if (pairs[qid] != null) {
          pairs[qid].deliver();
          pairs[qid].sqSize = 0;
        }
      }
      case AdminOpcode.DELETE_IO_CQ -> pairs[qid] = null;
      default -> {}
    }
  }

  /** Does what there is to do; whether there was anything. */
  boolean pass() {
    boolean work = malice.isBusy();
    for (Pair p : pairs) {
      work |= p != null && p.isRung();
    }
    if (!work) {
      return false;
    }
    lock.lock();
    try {
      malice.act();
      for (int qid = 0; qid < pairs.length; qid++) {
        if (pairs[qid] != null && pairs[qid].isRung()) {
          pairs[qid].forward();
        }
      }
      sim.poll();
      for (int qid = 0; qid < pairs.length; qid++) {
        if (pairs[qid] != null) {
          pairs[qid].deliver();
        }
      }
    } finally {
      lock.unlock();
    }
    return true;
  }

  void close() {
    inboxRange.close();
  }
}
