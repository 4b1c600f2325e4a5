package io.gpunvme.sim;

import io.gpunvme.nvme.spec.StatusCode;
import java.util.SplittableRandom;

/**
 * One worker's way of a command: fetched, perhaps delayed, executed, completed; and the faults that
 * befall it on that way. Guarded by the worker's lock.
 *
 * <p>A command that executes at once never enters any list; only those that wait are linked to
 * their queue, where Abort, Delete Queue and resets find them.
 */
final class CommandPipeline {
  /** Commands fetched from one queue before the next queue has its turn. */
  private static final int BURST = 32;

  /** The same in bytes moved: a queue of long commands has as long a turn as one of short ones. */
  private static final long BURST_BYTES = 512 << 10;

  /** Commands whose time has come executed in one pass. */
  private static final int MAX_DUE = 64;

  /** How far commands of equal latency are shuffled at least. */
  private static final long MIN_SPREAD_NANOS = 20_000;

  private static final long REORDER_NANOS = 1_000_000;

  private final ControllerLogs logs;
  private final AdminCommands adminCommands;
  private final IoCommands ioCommands;
  private final Worker worker;
  private final ControllerStatus status;
  private final FaultPlan faults;
  private final CommandScheduler scheduler = new CommandScheduler();
  private final CommandPool pool;
  private final CompletionPoster poster;
  private final RemoteMover mover;
  private final SimStats.Stripe stats;
  private final DoorbellErrors errors;
  private final SplittableRandom random;
  private final long latency;
  private final long spread;
  private final boolean immediate;

  CommandPipeline(
      SimConfig config,
      ControllerStatus status,
      FaultPlan faults,
      DoorbellErrors errors,
      DmaSpace dma,
      ControllerLogs logs,
      AdminCommands adminCommands,
      IoCommands ioCommands,
      Worker worker) {
    this.logs = logs;
    this.adminCommands = adminCommands;
    this.ioCommands = ioCommands;
    this.worker = worker;
    this.status = status;
    this.faults = faults;
    stats = worker.stats();
    this.errors = errors;
    pool = new CommandPool(dma, worker.channels(), worker.memory());
    mover = new RemoteMover(dma, worker.channels());
    poster = new CompletionPoster(status, pool, scheduler, stats, errors);
    random = new SplittableRandom(config.seed() + worker.index());
    latency = config.latencyNanos();
    spread = config.outOfOrder() ? Math.max(latency, MIN_SPREAD_NANOS) : 0;
    immediate = latency == 0 && spread == 0;
  }

  /** Nanoseconds until a command or a completion is due; {@link Long#MAX_VALUE} if none waits. */
  long neededIn(long now) {
    if (poster.hasRepairs() || !mover.isIdle()) {
      return 0;
    }
    return scheduler.isEmpty() ? Long.MAX_VALUE : scheduler.untilNext(now);
  }

  CompletionPoster poster() {
    return poster;
  }

  RemoteMover mover() {
    return mover;
  }

  /** Looks at a queue's doorbell and begins what it announces. Returns how many commands. */
  int fetch(SubmissionQueue sq, long now) {
    return fetch(sq, now, false);
  }

  /** The same for an I/O queue, up to the first command that takes long. */
  int fetchShort(SubmissionQueue sq, long now) {
    return fetch(sq, now, true);
  }

  private int fetch(SubmissionQueue sq, long now, boolean onlyShort) {
    if (sq.isRung()) {
      stats.doorbell(sq.doorbell());
      if (sq.tailIsWrong()) {
        errors.report(stats, ControllerEvents.ERROR_INVALID_DOORBELL_VALUE);
      }
    }
    int limit = Math.min(sq.announced(), BURST);
    long enough = stats.moved() + BURST_BYTES;
    int n = 0;
    while (n < limit
        && stats.moved() < enough
        && sq.mayFetch(now, faults)
        && !sq.isDeleted()
        && !status.hasStopped()) {
      if (!sq.prepare()) {
        status.fatal("submission queue " + sq.qid() + " is not mapped");
        return n;
      }
      if (onlyShort && !ioCommands.isShort(sq)) {
        return n;
      }
      begin(sq, now);
      n++;
    }
    return n;
  }

  private void begin(SubmissionQueue sq, long now) {
    SimCommand c = pool.take();
    sq.fetch(c.words);
    c.decode();
    if (c.queue != sq) {
      c.queue = sq;
    }
    c.sqid = sq.qid();
    c.admin = c.sqid == 0;
    c.dw0 = 0;
    c.dw1 = 0;
    c.overtakers = 0;
    c.announced = false;
    c.data.clear();
    stats.fetched(c.admin, c.opcode, c.sqid, sq.doorbell().isByPeer());
    c.ownsCid = sq.claim(c.cid);
    if (!c.ownsCid) {
      stats.add(SimStats.Counter.DUPLICATE_CIDS, 1);
      finish(c, StatusCode.COMMAND_ID_CONFLICT.status());
      return;
    }
    FaultRule fault = faults.onCommand(c.sqid, c.sqe);
    if (fault != null) {
      beginFaulty(c, sq, fault, now);
    } else if (c.admin || immediate) {
      execute(c);
    } else {
      schedule(c, sq, dueTime(now));
    }
  }

  private long dueTime(long now) {
    return now + latency + (spread == 0 ? 0 : random.nextLong(spread));
  }

  private void schedule(SimCommand c, SubmissionQueue sq, long due) {
    if (c.state != SimCommand.State.FINISHED) {
      c.state = SimCommand.State.SCHEDULED;
    }
    c.due = due;
    if (!c.linked) {
      sq.link(c);
    }
    scheduler.add(c);
  }

  private void hold(SimCommand c, SubmissionQueue sq) {
    park(c, sq, SimCommand.State.HELD);
  }

  private static void park(SimCommand c, SubmissionQueue sq, int state) {
    c.state = state;
    if (!c.linked) {
      sq.link(c);
    }
  }

  /** Executes commands, and posts completions, whose time has come. Returns how many. */
  int runDue(long now) {
    int n = 0;
    SimCommand c;
    while (n < MAX_DUE && !status.hasStopped() && (c = scheduler.takeDue(now)) != null) {
      if (c.state == SimCommand.State.FINISHED) {
        poster.post(c, now);
      } else {
        execute(c);
      }
      n++;
    }
    return n;
  }

  private void execute(SimCommand c) {
    FaultRule fault = c.fault;
    if (fault != null && !fault.executes()) {
      skip(c, fault);
      return;
    }
    if (fault != null && fault.action() == FaultRule.Action.EARLY && poster.announce(c)) {
      schedule(c, CompletionPoster.queue(c), worker.now() + fault.nanos());
      return;
    }
    c.state = SimCommand.State.RUNNING;
    int result;
    try {
      result = (c.admin ? adminCommands : ioCommands).execute(c, worker);
    } catch (RemoteFailure e) {
      result = StatusCode.DATA_TRANSFER_ERROR.status();
    }
    switch (result) {
      case CommandExecutor.HOLD -> hold(c, CompletionPoster.queue(c));
      case CommandExecutor.COPY -> park(c, CompletionPoster.queue(c), SimCommand.State.COPYING);
      default -> finish(c, result);
    }
  }

  /** Completes commands whose data has been copied. Returns how many copies were over. */
  int runCopies() {
    if (mover.isIdle()) {
      return 0;
    }
    int n = mover.poll();
    SimCommand c;
    while (!status.hasStopped() && (c = mover.takeOver()) != null) {
      finish(c, ioCommands.copied(c, worker));
    }
    return n;
  }

  /**
   * Ends a command whose data is being copied: returns when no copy is under way. What was left out
   * makes its status {@code otherwise}.
   */
  void conclude(SimCommand c, int otherwise) {
    mover.settle(c);
    int result = c.transfer.isCut() ? otherwise : ioCommands.copied(c, worker);
    c.fault = null;
    finish(c, result);
  }

  /** Completes a command: every command ends here, whatever its fate. */
  void finish(SimCommand c, int result) {
    c.state = SimCommand.State.FINISHED;
    FaultRule fault = c.fault;
    if (fault == null) {
      c.status = logs.completed(c, result);
      poster.post(c, worker.now());
    } else {
      finishFaulty(c, result, fault);
    }
  }

  /** Ends a command that has not executed: it was aborted, or its queue is being deleted. */
  void cancel(SimCommand c, int result) {
    scheduler.remove(c);
    c.fault = null;
    finish(c, result);
  }

  /** Posts the completion of a finished command that a fault makes late. */
  void hurry(SimCommand c) {
    if (c.heapIndex != SimCommand.NOT_SCHEDULED) {
      scheduler.remove(c);
      poster.post(c, worker.now());
    }
  }

  /** Forgets a queue's outstanding commands: the controller is being reset. */
  void abandon(SubmissionQueue sq) {
    SimCommand c = sq.firstOutstanding();
    while (c != null) {
      SimCommand next = c.next;
      if (c.state == SimCommand.State.COPYING) {
        mover.settle(c);
      }
      scheduler.remove(c);
      poster.recycle(c, sq);
      c = next;
    }
  }

  /** Forgets the completions a queue holds back: it is being deleted. */
  void dropHeldBack(CompletionQueue cq) {
    SimCommand c;
    while ((c = cq.takeHeldBack()) != null) {
      if (c.state != SimCommand.State.FREE) {
        poster.recycle(c, CompletionPoster.queue(c));
      }
    }
  }

  // ---- faults

  private void beginFaulty(SimCommand c, SubmissionQueue sq, FaultRule fault, long now) {
    c.fault = fault;
    stats.add(SimStats.Counter.FAULTS, 1);
    boolean waits = !(c.admin || immediate);
    switch (fault.action()) {
      case CFS -> {
        status.fatal("fault rule: " + fault);
        hold(c, sq);
      }
      case GONE -> {
        status.gone();
        hold(c, sq);
      }
      case DELAY -> schedule(c, sq, (waits ? dueTime(now) : now) + fault.nanos());
      default -> {
        if (fault.action() == FaultRule.Action.STALL) {
          sq.stall(fault, now);
        }
        if (waits) {
          schedule(c, sq, dueTime(now));
        } else {
          execute(c);
        }
      }
    }
  }

  /** A command that does not take effect. */
  private void skip(SimCommand c, FaultRule fault) {
    switch (fault.action()) {
      case DROP, STALL -> hold(c, CompletionPoster.queue(c));
      default -> finish(c, 0);
    }
  }

  private void finishFaulty(SimCommand c, int result, FaultRule fault) {
    boolean replace = fault.action() == FaultRule.Action.STATUS && result == 0;
    c.status = logs.completed(c, replace ? fault.status() : result);
    SubmissionQueue sq = CompletionPoster.queue(c);
    switch (fault.action()) {
      case DROP -> poster.recycle(c, sq);
      case LATE -> schedule(c, sq, worker.now() + fault.nanos());
      case REORDER -> {
        c.overtakers = Math.max(1, fault.amount());
        sq.reordering(sq.reordering() + 1);
        schedule(c, sq, worker.now() + REORDER_NANOS);
      }
      default -> poster.post(c, worker.now());
    }
  }
}
