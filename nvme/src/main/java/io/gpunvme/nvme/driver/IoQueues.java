package io.gpunvme.nvme.driver;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.ProtocolException;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Registers;
import java.lang.foreign.MemorySegment;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The I/O queue pairs: which exist here, which the controller knows (Base 2.0, 5.3 to 5.6), whoever
 * drives them. A pair uses the same identifier for both queues, is polled, and lies in contiguous
 * memory. Guarded by the lock of {@link Lifecycle}.
 */
final class IoQueues {
  private static final int PHYSICALLY_CONTIGUOUS = 1;

  private final AdminQueue admin;
  private final PciFunction function;
  private final Bar bar;
  private final Cap cap;
  private final long timeoutNanos;
  private final ControllerTraffic traffic = new ControllerTraffic();
  private final TreeMap<Integer, IoQueuePair> pairs = new TreeMap<>();
  private final Set<IoQueuePair> known = new HashSet<>();

  /**
   * Identifiers whose doorbells somebody may still store to who never heard that the pair is gone.
   * A reset does not end that, so no pair gets them any more.
   */
  private final Set<Integer> retired = new HashSet<>();

  private int limit;
  private @Nullable MemorySegment doorbells;

  /** Why {@link #limit} is 0, if it is. */
  private String noneReason = "none were requested yet";

  IoQueues(AdminQueue admin, PciFunction function, Bar bar, Cap cap, ControllerOptions options) {
    this.admin = admin;
    this.function = function;
    this.bar = bar;
    this.cap = cap;
    this.timeoutNanos = options.recoveryTimeout().toNanos();
  }

  /** How many pairs there may be. */
  int limit() {
    return limit;
  }

  /**
   * After every bring-up: how many pairs the controller granted. Fewer are used if BAR0 has, or the
   * transport maps, fewer doorbells.
   */
  void grant(int granted) {
    doorbells = null;
    noneReason = "BAR0 has no doorbells for them, or they cannot be mapped";
    long stride = 2L * (4L << cap.get(Cap.DSTRD));
    long fit = (bar.size() - Registers.DOORBELLS) / stride - 1;
    limit = (int) Math.min(granted, Math.max(0, fit));
    while (limit > 0) {
      try {
        doorbells = bar.memory(Registers.DOORBELLS, (limit + 1) * stride);
        return;
      } catch (InvalidRequestException e) {
        limit /= 2;
      }
    }
  }

  /** After a bring-up whose request for queues was refused. */
  void refuse(String reason) {
    limit = 0;
    doorbells = null;
    noneReason = reason;
  }

  /** Throws unless there may be at least one pair. */
  void require() {
    if (limit == 0) {
      throw none();
    }
  }

  private ProtocolException none() {
    return new ProtocolException("the controller granted no I/O queues (" + noneReason + ")");
  }

  /** What they have done. Needs no lock. */
  ControllerTraffic traffic() {
    return traffic;
  }

  /** The longest ring the controller takes, entries. */
  int maxEntries() {
    return cap.get(Cap.MQES) + 1;
  }

  /** Creates a pair here and at the controller; {@code qid} of the template is ignored. */
  QueuePair create(QueuePairSpec wanted) {
    MemorySegment mapped = requireDoorbells();
    int entries = maxEntries();
    if (wanted.sqSize() > entries || wanted.cqSize() > entries) {
      throw new InvalidRequestException(
          "queues of %d and %d entries, but the controller takes at most %d (CAP.MQES)"
              .formatted(wanted.sqSize(), wanted.cqSize(), entries));
    }
    QueuePair pair =
        add(new QueuePair(wanted.withQid(freeQid()), function, mapped, function.poller()));
    traffic.add(pair.traffic());
    return pair;
  }

  /** Makes the controller use rings that somebody else drives. */
  ExternalQueuePair create(QueueRings rings, int pageSize) {
    requireDoorbells();
    ExternalQueuePair pair =
        new ExternalQueuePair(freeQid(), cap.get(Cap.DSTRD), pageSize, maxEntries(), rings);
    // Its initiator only stores. Before the controller knows the pair, and until it is closed.
    pair.onClose(function.poller().keepAwake());
    return add(pair);
  }

  private MemorySegment requireDoorbells() {
    MemorySegment mapped = doorbells;
    if (mapped == null) {
      throw none();
    }
    return mapped;
  }

  private <P extends IoQueuePair> P add(P pair) {
    try {
      createAtController(pair);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, pair::close);
      throw e;
    }
    pairs.put(pair.qid(), pair);
    return pair;
  }

  int free() {
    int open = 0;
    for (int qid = 1; qid <= limit; qid++) {
      open += isFree(qid) ? 1 : 0;
    }
    return open;
  }

  private boolean isFree(int qid) {
    return !pairs.containsKey(qid) && !retired.contains(qid);
  }

  private int freeQid() {
    for (int qid = 1; qid <= limit; qid++) {
      if (isFree(qid)) {
        return qid;
      }
    }
    String gone =
        retired.isEmpty()
            ? ""
            : ", or lost to kernels that did not end (%d); a new process has them again"
                .formatted(retired.size());
    throw new InvalidRequestException("all " + limit + " I/O queue pairs are in use" + gone);
  }

  private void createAtController(IoQueuePair pair) {
    int qid = pair.qid();
    admin.execute(
        AdminCommand.of(AdminOpcode.CREATE_IO_CQ)
            .prp1(pair.cqBusAddress())
            .cdw10((pair.cqSize() - 1) << 16 | qid)
            .cdw11(PHYSICALLY_CONTIGUOUS),
        timeoutNanos);
    try {
      admin.execute(
          AdminCommand.of(AdminOpcode.CREATE_IO_SQ)
              .prp1(pair.sqBusAddress())
              .cdw10((pair.sqSize() - 1) << 16 | qid)
              .cdw11(qid << 16 | PHYSICALLY_CONTIGUOUS),
          timeoutNanos);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> deleteQuietly(AdminOpcode.DELETE_IO_CQ, qid));
      throw e;
    }
    known.add(pair);
  }

  private void deleteQuietly(int opcode, int qid) {
    try {
      delete(opcode, qid);
    } catch (NvmeException | InvalidRequestException e) {
      NvmeController.LOG.log(
          System.Logger.Level.DEBUG, "queue " + qid + " stays at the controller", e);
    }
  }

  private void delete(int opcode, int qid) {
    admin.execute(AdminCommand.of(opcode).cdw10(qid), timeoutNanos);
  }

  /**
   * Empties a broken pair's rings and creates it anew; its outstanding commands have been ended.
   */
  void recreate(IoQueuePair pair) {
    if (pair.qid() > limit) {
      throw new InvalidRequestException(
          "queue pair %d is beyond the %d that the controller grants now; delete it"
              .formatted(pair.qid(), limit));
    }
    pair.rebuild();
    try {
      createAtController(pair);
    } catch (NvmeException | InvalidRequestException e) {
      pair.breakQueue();
      throw e;
    }
  }

  /** Whether this pair is one of ours and not closed. */
  boolean owns(IoQueuePair pair) {
    return pairs.get(pair.qid()) == pair;
  }

  /** What to say of a pair that is not. */
  InvalidRequestException stranger(IoQueuePair pair) {
    return new InvalidRequestException(
        "queue pair %d is closed or not this controller's".formatted(pair.qid()));
  }

  /** Whether the controller has this pair at present. */
  boolean knows(IoQueuePair pair) {
    return known.contains(pair);
  }

  /** First half of making the controller forget a pair: it completes what is outstanding. */
  void deleteSubmissionQueue(IoQueuePair pair) {
    delete(AdminOpcode.DELETE_IO_SQ, pair.qid());
  }

  /** Second half. */
  void deleteCompletionQueue(IoQueuePair pair) {
    delete(AdminOpcode.DELETE_IO_CQ, pair.qid());
    known.remove(pair);
  }

  /** Makes the controller forget a pair, if it knows it, and frees the pair's memory. */
  void delete(IoQueuePair pair) {
    if (pair.state() == QueuePair.State.CLOSED) {
      return;
    }
    if (!owns(pair)) {
      throw stranger(pair);
    }
    if (known.contains(pair)) {
      try {
        deleteSubmissionQueue(pair);
        deleteCompletionQueue(pair);
      } catch (NvmeException | InvalidRequestException e) {
        if (known.contains(pair)) {
          throw e;
        }
        // A reset came between: the controller knows no queue any more.
      }
    }
    pairs.remove(pair.qid());
    pair.close();
  }

  /** Deletes a pair that may be driven on: nobody gets its identifier and its doorbells again. */
  void retire(IoQueuePair pair) {
    if (owns(pair)) {
      // Before: deleting may fail half way.
      retired.add(pair.qid());
    }
    delete(pair);
  }

  /** Before a shutdown; failures do not matter then. */
  void deleteAllAtController() {
    breakAll();
    for (IoQueuePair pair : Set.copyOf(known)) {
      deleteQuietly(AdminOpcode.DELETE_IO_SQ, pair.qid());
      deleteQuietly(AdminOpcode.DELETE_IO_CQ, pair.qid());
    }
    known.clear();
  }

  /** The controller forgets its queues now; owners of pairs notice at their next call. */
  void breakAll() {
    pairs.values().forEach(IoQueuePair::breakQueue);
  }

  /** The controller has been reset. */
  void forgotten() {
    known.clear();
  }

  /** Frees all pairs; the controller must not be able to touch them any more. */
  void close() {
    List<IoQueuePair> all = List.copyOf(pairs.values());
    pairs.clear();
    known.clear();
    CloseAll.each(all, IoQueuePair::close);
  }
}
