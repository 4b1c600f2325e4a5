package io.gpunvme.sim;

import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Aqa;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The controller's queues by identifier, and the admin commands that create, delete and search
 * them.
 *
 * <p>The tables are guarded by worker 0's lock: admin commands run there, resets hold all locks. A
 * queue itself belongs to its worker (completion queue identifier modulo workers; the admin queue
 * and so worker 0's lock come first), whose lock is taken to touch it.
 */
final class QueueAdmin {
  private static final int IOSQES = Integer.numberOfTrailingZeros(Sqe.SIZE);
  private static final int IOCQES = Integer.numberOfTrailingZeros(Cqe.SIZE);
  private static final int WORD = 0xFFFF;
  private static final int CONTIGUOUS = 1;
  private static final int INTERRUPTS_ENABLED = 1 << 1;

  private final Supplier<Cc> cc;
  private final Workers workers;
  private final Interrupts interrupts;
  private final DataPointer dataPointer;
  private final ControllerStatus status;
  private final ControllerEvents events;
  private final SimConfig config;
  private final DmaSpace dma;
  private final DoorbellArray doorbells;
  private final @Nullable SubmissionQueue[] sqs;
  private final @Nullable CompletionQueue[] cqs;
  private int grantedSqs;
  private int grantedCqs;
  private int ioQueues;
  private @Nullable ShadowDoorbells shadow;

  QueueAdmin(
      SimConfig config,
      DmaSpace dma,
      DataPointer dataPointer,
      DoorbellArray doorbells,
      Interrupts interrupts,
      ControllerEvents events,
      ControllerStatus status,
      Workers workers,
      Supplier<Cc> cc) {
    this.cc = cc;
    this.workers = workers;
    this.interrupts = interrupts;
    this.dataPointer = dataPointer;
    this.status = status;
    this.events = events;
    this.doorbells = doorbells;
    this.config = config;
    this.dma = dma;
    sqs = new SubmissionQueue[config.ioQueues() + 1];
    cqs = new CompletionQueue[config.ioQueues() + 1];
    grantedSqs = config.ioQueues();
    grantedCqs = config.ioQueues();
  }

  /** Whether an I/O queue exists. */
  boolean created() {
    return ioQueues > 0;
  }

  /** What Number of Queues granted, zero-based; identifiers beyond are refused. */
  void grant(int submissionQueues, int completionQueues) {
    grantedSqs = submissionQueues + 1;
    grantedCqs = completionQueues + 1;
  }

  // ---- admin commands; each returns a status

  /** Create I/O Completion Queue (Base 2.0, 5.4). */
  int createCq(SimCommand c) {
    int cdw10 = Sqe.cdw10(c.sqe, 0);
    int cdw11 = Sqe.cdw11(c.sqe, 0);
    int qid = cdw10 & WORD;
    int size = (cdw10 >>> 16) + 1;
    int vector = cdw11 >>> 16;
    boolean interrupts = (cdw11 & INTERRUPTS_ENABLED) != 0;
    if (qid == 0 || qid > grantedCqs || cqs[qid] != null) {
      return StatusCode.INVALID_QUEUE_IDENTIFIER.dnr();
    }
    if (isBadSize(size) || cc.get().get(Cc.IOCQES) != IOCQES) {
      return StatusCode.INVALID_QUEUE_SIZE.dnr();
    }
    if (isBadVector(vector, interrupts)) {
      return StatusCode.INVALID_INTERRUPT_VECTOR.dnr();
    }
    int[] status = new int[1];
    RingMemory ring = ring(c, (cdw11 & CONTIGUOUS) != 0, size, Cqe.SIZE, status);
    if (ring == null) {
      return status[0];
    }
    Worker worker = workers.ofQueue(qid);
    add(new CompletionQueue(qid, size, ring, doorbells.ofCq(qid), worker, interrupts, vector));
    return 0;
  }

  /** Create I/O Submission Queue (Base 2.0, 5.5). */
  int createSq(SimCommand c) {
    int cdw10 = Sqe.cdw10(c.sqe, 0);
    int cdw11 = Sqe.cdw11(c.sqe, 0);
    int qid = cdw10 & WORD;
    int size = (cdw10 >>> 16) + 1;
    int cqid = cdw11 >>> 16;
    if (qid == 0 || qid > grantedSqs || sqs[qid] != null) {
      return StatusCode.INVALID_QUEUE_IDENTIFIER.dnr();
    }
    if (cqid == 0 || cqid > grantedCqs) {
      return StatusCode.INVALID_QUEUE_IDENTIFIER.dnr();
    }
    CompletionQueue cq = cqs[cqid];
    if (cq == null) {
      return StatusCode.COMPLETION_QUEUE_INVALID.dnr();
    }
    if (isBadSize(size) || cc.get().get(Cc.IOSQES) != IOSQES) {
      return StatusCode.INVALID_QUEUE_SIZE.dnr();
    }
    int[] status = new int[1];
    RingMemory ring = ring(c, (cdw11 & CONTIGUOUS) != 0, size, Sqe.SIZE, status);
    if (ring == null) {
      return status[0];
    }
    add(new SubmissionQueue(qid, size, ring, cq, doorbells.ofSq(qid)));
    return 0;
  }

  private boolean isBadSize(int size) {
    return size < 2 || size > config.mqes() + 1;
  }

  /** Without MSI-X there is one line and therefore one vector; all stand for it if not strict. */
  private boolean isBadVector(int vector, boolean enabled) {
    boolean line = enabled && config.strict() && !interrupts.usesMessages();
    return vector >= interrupts.vectors() || line && vector != 0;
  }

  private @Nullable RingMemory ring(
      SimCommand c, boolean contiguous, int size, int entryBytes, int[] status) {
    if (!contiguous && config.contiguousQueues()) {
      status[0] = StatusCode.INVALID_FIELD.dnr();
      return null;
    }
    long prp1 = Sqe.dptr1(c.sqe, 0);
    long pageBytes = dataPointer.pageBytes();
    if ((prp1 & pageBytes - 1) != 0) {
      status[0] = StatusCode.PRP_OFFSET_INVALID.dnr();
      return null;
    }
    RingMemory ring =
        contiguous
            ? RingMemory.contiguous(dma, prp1, size, entryBytes)
            : RingMemory.paged(
                dma,
                workers.ofQueue(0).channels().window(),
                prp1,
                size,
                entryBytes,
                pageBytes,
                status);
    if (ring != null) {
      status[0] = ring.status();
    }
    return status[0] == 0 ? ring : null;
  }

  /** Delete I/O Completion Queue (Base 2.0, 5.6). */
  int deleteCq(SimCommand c) {
    int qid = Sqe.cdw10(c.sqe, 0) & WORD;
    CompletionQueue cq = qid == 0 || qid >= cqs.length ? null : cqs[qid];
    if (cq == null) {
      return StatusCode.INVALID_QUEUE_IDENTIFIER.dnr();
    }
    if (cq.submissionQueues() > 0) {
      return StatusCode.INVALID_QUEUE_DELETION.dnr();
    }
    remove(cq);
    return 0;
  }

  /**
   * Delete I/O Submission Queue (Base 2.0, 5.7): what is outstanding completes before this command
   * does.
   */
  int deleteSq(SimCommand c) {
    int qid = Sqe.cdw10(c.sqe, 0) & WORD;
    SubmissionQueue sq = qid == 0 || qid >= sqs.length ? null : sqs[qid];
    if (sq == null) {
      return StatusCode.INVALID_QUEUE_IDENTIFIER.dnr();
    }
    betweenPasses(
        sq.cq(),
        pipeline -> {
          remove(sq);
          SimCommand one = sq.firstOutstanding();
          while (one != null) {
            SimCommand next = one.next;
            end(one, pipeline);
            one = next;
          }
        });
    return 0;
  }

  /**
   * Ends commands while their worker makes no pass; what it completes is there before the command
   * that ended it completes.
   */
  private void betweenPasses(CompletionQueue cq, Consumer<CommandPipeline> change) {
    Worker worker = cq.worker();
    worker.lock();
    try {
      change.accept(worker.pipeline());
      cq.flush();
      cq.settle();
    } catch (RemoteFailure e) {
      status.fatal("completion queue " + cq.qid() + ": " + e.getMessage());
    } finally {
      worker.unlock();
    }
  }

  private static void end(SimCommand one, CommandPipeline pipeline) {
    int status = StatusCode.ABORTED_SQ_DELETION.status();
    switch (one.state) {
      case SimCommand.State.FINISHED -> pipeline.hurry(one);
      case SimCommand.State.COPYING -> pipeline.conclude(one, status);
      default -> pipeline.cancel(one, status);
    }
  }

  /** Abort (Base 2.0, 5.1): ends a command that has not begun to execute. */
  int abort(SimCommand c) {
    if (otherAborts() > config.acl()) {
      return StatusCode.ABORT_LIMIT_EXCEEDED.status();
    }
    int cdw10 = Sqe.cdw10(c.sqe, 0);
    int sqid = cdw10 & WORD;
    c.dw0 = 1;
    SubmissionQueue sq = sqid >= sqs.length ? null : sqs[sqid];
    if (sq == null) {
      return 0;
    }
    betweenPasses(
        sq.cq(),
        pipeline -> {
          SimCommand victim = sq.find(cdw10 >>> 16);
          if (victim != null && abort(victim, pipeline)) {
            c.dw0 = 0;
          }
        });
    return 0;
  }

  private boolean abort(SimCommand victim, CommandPipeline pipeline) {
    int status = StatusCode.ABORT_REQUESTED.status();
    switch (victim.state) {
      case SimCommand.State.SCHEDULED, SimCommand.State.HELD -> {
        events.forget(victim);
        pipeline.cancel(victim, status);
        return true;
      }
      case SimCommand.State.COPYING -> {
        // What is under way ends by itself, and soon.
        boolean idle = victim.transfer.isWaiting() && !victim.transfer.isUnderWay();
        if (idle) {
          pipeline.conclude(victim, status);
        }
        return idle;
      }
      default -> {
        return false;
      }
    }
  }

  private int otherAborts() {
    SubmissionQueue admin = sqs[0];
    int n = 0;
    for (SimCommand c = admin == null ? null : admin.firstOutstanding(); c != null; c = c.next) {
      n += c.opcode == AdminOpcode.ABORT && c.state != SimCommand.State.RUNNING ? 1 : 0;
    }
    return n;
  }

  /** Doorbell Buffer Config (Base 2.0, 5.8). */
  int doorbellBuffer(SimCommand c) {
    long values = Sqe.dptr1(c.sqe, 0);
    long events = Sqe.dptr2(c.sqe, 0);
    long pageBytes = dataPointer.pageBytes();
    if (((values | events) & pageBytes - 1) != 0 || values == events) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    ShadowDoorbells pages = new ShadowDoorbells(dma, values, events, pageBytes);
    if (!pages.isMapped()) {
      return StatusCode.DATA_TRANSFER_ERROR.status();
    }
    workers.lock();
    try {
      shadow = pages;
      for (int qid = 1; qid < sqs.length; qid++) {
        SubmissionQueue sq = sqs[qid];
        if (sq != null) {
          sq.doorbell().shadow(pages);
        }
        CompletionQueue cq = cqs[qid];
        if (cq != null) {
          cq.doorbell().shadow(pages);
        }
      }
    } finally {
      workers.unlock();
    }
    return 0;
  }

  // ---- the tables

  /** Creates the admin queues from AQA, ASQ and ACQ; with all worker locks held. */
  void createAdmin(RegisterFile registers) {
    doorbells.clear();
    int cqSize = registers.aqa().get(Aqa.ACQS) + 1;
    int sqSize = registers.aqa().get(Aqa.ASQS) + 1;
    RingMemory cqRing = RingMemory.contiguous(dma, registers.acq(), cqSize, Cqe.SIZE);
    RingMemory sqRing = RingMemory.contiguous(dma, registers.asq(), sqSize, Sqe.SIZE);
    CompletionQueue cq =
        new CompletionQueue(0, cqSize, cqRing, doorbells.ofCq(0), workers.ofQueue(0), true, 0);
    add(cq);
    add(new SubmissionQueue(0, sqSize, sqRing, cq, doorbells.ofSq(0)));
  }

  /** Forgets every queue and what is in it; with all worker locks held. */
  void deleteAll() {
    for (SubmissionQueue sq : sqs) {
      if (sq != null) {
        sq.cq().worker().pipeline().abandon(sq);
        remove(sq);
      }
    }
    for (CompletionQueue cq : cqs) {
      if (cq != null) {
        remove(cq);
      }
    }
    shadow = null;
    grantedSqs = config.ioQueues();
    grantedCqs = config.ioQueues();
    doorbells.clear();
  }

  private void add(CompletionQueue cq) {
    Worker worker = cq.worker();
    worker.lock();
    try {
      if (cq.qid() != 0) {
        ioQueues++;
        watchShadow(cq.doorbell());
      }
      cqs[cq.qid()] = cq;
      worker.add(cq);
    } finally {
      worker.unlock();
    }
  }

  private void add(SubmissionQueue sq) {
    Worker worker = sq.cq().worker();
    worker.lock();
    try {
      if (sq.qid() != 0) {
        ioQueues++;
        watchShadow(sq.doorbell());
      }
      sqs[sq.qid()] = sq;
      sq.cq().submissionQueues(sq.cq().submissionQueues() + 1);
      worker.add(sq);
    } finally {
      worker.unlock();
    }
  }

  private void watchShadow(Doorbell doorbell) {
    if (shadow != null) {
      doorbell.shadow(shadow);
    }
  }

  private void remove(SubmissionQueue sq) {
    sqs[sq.qid()] = null;
    ioQueues -= sq.qid() == 0 ? 0 : 1;
    sq.delete();
    sq.cq().submissionQueues(sq.cq().submissionQueues() - 1);
    sq.cq().worker().remove(sq);
  }

  private void remove(CompletionQueue cq) {
    Worker worker = cq.worker();
    worker.lock();
    try {
      cqs[cq.qid()] = null;
      ioQueues -= cq.qid() == 0 ? 0 : 1;
      cq.delete();
      worker.remove(cq);
      interrupts.remove(cq);
      worker.pipeline().dropHeldBack(cq);
    } finally {
      worker.unlock();
    }
  }

  /**
   * Looks for doorbells of queues that do not exist and puts them back to zero. Called now and then
   * by worker 0.
   *
   * @return how many were written
   */
  int strayDoorbells() {
    int strays = 0;
    for (int qid = 0; qid < doorbells.pairs(); qid++) {
      boolean known = qid < sqs.length;
      strays += known && sqs[qid] != null ? 0 : stray(doorbells.sqTail(qid));
      strays += known && cqs[qid] != null ? 0 : stray(doorbells.cqHead(qid));
    }
    return strays;
  }

  private int stray(long offset) {
    return doorbells.takeBack(offset) ? 1 : 0;
  }
}
