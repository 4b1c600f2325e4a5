package io.gpunvme.sim;

import io.gpunvme.base.Uninterrupted;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.LongSupplier;

/**
 * Serves some of the controller's queues, over and over: a thread of its own, or whoever calls
 * {@link SimulatedController#poll}.
 *
 * <p>A pass holds the worker's lock. Whoever changes queues (a register write, an admin command for
 * another worker's queue, unmapping, closing) takes the locks it needs in ascending order of worker
 * and so finds no pass under way. The lock is fair, or a busy worker would starve them.
 */
final class Worker {
  private static final long MIN_SCRATCH = 64 << 10;

  /** Of a worker that somebody else wakes. */
  static final long LONGEST_SLEEP_NANOS = 200_000_000;

  /** After a bug, which may show again at once. */
  private static final long SHORT_REST_NANOS = 1_000_000;

  private static final SubmissionQueue[] NO_SQS = {};
  private static final CompletionQueue[] NO_CQS = {};

  private final LongSupplier clock;
  private final IdleWatch idleWatch;
  private final Housekeeper housekeeper;
  private final Interrupts interrupts;
  private final int index;
  private final SimStats.Stripe stats;
  private final ControllerStatus status;
  private final ReentrantLock lock = new ReentrantLock(true);

  // Ends with the worker: by whoever closes it, or by the pass that it was closed in.
  private final Arena memory = Arena.ofShared();
  private final Thread thread;
  private final RemoteChannels channels;
  private final CommandPipeline pipeline;
  private final CompletionPoster poster;
  private SubmissionQueue[] sqs = NO_SQS;
  private CompletionQueue[] cqs = NO_CQS;
  private MemorySegment scratch = MemorySegment.NULL;
  private long now;
  private long neededIn;
  private boolean closed;

  private boolean needed;

  /** Whether a long command waits for short ones of other queues, which wait for nobody. */
  private boolean servingOthers;

  // Written by close, read by the worker's thread before each pass.
  private volatile boolean stopped;

  // Written by the worker's thread, read by worker 0's.
  private volatile boolean asleep;

  Worker(
      String name,
      int index,
      LongSupplier clock,
      ControllerStatus status,
      SimStats stats,
      DmaSpace dma,
      Interrupts interrupts,
      Housekeeper housekeeper,
      IdleWatch idleWatch,
      Function<Worker, CommandPipeline> pipelines) {
    this.clock = clock;
    this.idleWatch = idleWatch;
    this.housekeeper = housekeeper;
    this.interrupts = interrupts;
    this.index = index;
    this.stats = stats.stripe(index);
    this.status = status;
    channels = new RemoteChannels(dma, memory, status::remoteFailure);
    pipeline = pipelines.apply(this);
    poster = pipeline.poster();
    thread = Thread.ofPlatform().daemon().name(name + "-worker-" + index).unstarted(this::run);
  }

  /** 0 for the worker that serves the admin queue. */
  int index() {
    return index;
  }

  /** Where this worker counts; only within its pass. */
  SimStats.Stripe stats() {
    return stats;
  }

  /** The time at which the pass began, {@link SimulatedController#now} time. */
  long now() {
    return now;
  }

  CommandPipeline pipeline() {
    return pipeline;
  }

  /** This worker's ways into remote memory. */
  RemoteChannels channels() {
    return channels;
  }

  /** Moves data that cannot be moved at once. */
  RemoteMover mover() {
    return pipeline.mover();
  }

  /** What this worker needs until it is closed. */
  Arena memory() {
    return memory;
  }

  /**
   * Native memory of this worker for the command being executed: at least {@code bytes}, aligned to
   * 64, contents undefined.
   */
  MemorySegment scratch(long bytes) {
    if (scratch.byteSize() < bytes) {
      // Doubled at least: what was too small stays until the end.
      long size = Math.max(bytes, Math.max(MIN_SCRATCH, 2 * scratch.byteSize()));
      scratch = memory.allocate(size, 64);
    }
    return scratch;
  }

  // ---- queues; with the lock held

  void lock() {
    lock.lock();
  }

  void unlock() {
    lock.unlock();
  }

  void add(SubmissionQueue sq) {
    sqs = Arrays.copyOf(sqs, sqs.length + 1);
    sqs[sqs.length - 1] = sq;
    wake();
  }

  void add(CompletionQueue cq) {
    cqs = Arrays.copyOf(cqs, cqs.length + 1);
    cqs[cqs.length - 1] = cq;
    wake();
  }

  void remove(SubmissionQueue sq) {
    sqs = Arrays.stream(sqs).filter(q -> q != sq).toArray(SubmissionQueue[]::new);
  }

  void remove(CompletionQueue cq) {
    cqs = Arrays.stream(cqs).filter(q -> q != cq).toArray(CompletionQueue[]::new);
  }

  // ---- the pass

  /** Serves every queue once. Returns how many commands moved on. */
  int pass() {
    lock.lock();
    try {
      now = clock.getAsLong();
      neededIn = Long.MAX_VALUE;
      needed = sqs.length + cqs.length > 0;
      return status.isActive(now) ? serve() : 0;
    } catch (RemoteFailure e) {
      status.fatal(unreachable(e));
      return 0;
    } catch (InternalError e) {
      // The virtual machine's name for SIGBUS: the host has cut the file that it gave us to map.
      status.fatal("memory of the host is gone: " + e.getMessage());
      return 0;
    } catch (Throwable t) {
      // Whatever the host did must not end a worker: it is our bug, and the host sees CFS.
      status.internalError(t);
      return 0;
    } finally {
      if (closed) {
        freeAfterPass();
      }
      lock.unlock();
    }
  }

  private int serve() {
    int work = pipeline.runCopies();
    work += pipeline.runDue(now) + poster.repair(now);
    if (work > 0) {
      // Fetching from remote memory takes a while; what is complete need not wait for it.
      for (CompletionQueue cq : cqs) {
        cq.flush();
      }
    }
    if (index == 0) {
      work += housekeeper.serve(this);
    }
    if (!status.isShuttingDown()) {
      // An admin command may replace the array; the queues of this round stay these.
      for (SubmissionQueue sq : sqs) {
        work += pipeline.fetch(sq, now);
      }
    }
    for (CompletionQueue cq : cqs) {
      work += serve(cq);
    }
    neededIn = pipeline.neededIn(now);
    return work;
  }

  /** Whether other queues may have short commands for {@link #serveOthers} while this one moves. */
  boolean mayServeOthers() {
    return !servingOthers && sqs.length > (index == 0 ? 2 : 1);
  }

  /**
   * Between two parts of a long command: carries out the short ones that other I/O queues have
   * announced, so that they need not wait for the whole of it.
   */
  void serveOthers(SimCommand current) {
    servingOthers = true;
    try {
      now = clock.getAsLong();
      int work = 0;
      for (SubmissionQueue sq : sqs) {
        if (sq.qid() != 0 && sq != current.queue) {
          work += pipeline.fetchShort(sq, now);
        }
      }
      if (work > 0) {
        for (CompletionQueue cq : cqs) {
          serve(cq);
        }
      }
    } catch (RemoteFailure e) {
      status.fatal(unreachable(e));
    } finally {
      servingOthers = false;
    }
  }

  private static String unreachable(RemoteFailure e) {
    return "a queue's memory cannot be reached: " + e.getMessage();
  }

  private int serve(CompletionQueue cq) {
    poster.updateHead(cq);
    int work = cq.holdsBack() ? poster.postHeldBack(cq, now) : 0;
    cq.flush();
    if (cq.interrupts()) {
      if (cq.interruptDue()) {
        cq.settle();
      }
      interrupts.update(cq, stats);
    }
    return work;
  }

  // ---- the thread

  void start() {
    thread.start();
  }

  /** Sleeps until {@link #wake}, or for a while: nothing is lost if nobody thought of waking it. */
  void park() {
    LockSupport.parkNanos(this, LONGEST_SLEEP_NANOS);
  }

  /** Ends a sleep of this worker's thread. */
  void wake() {
    if (index == 0) {
      idleWatch.wake();
    }
    LockSupport.unpark(thread);
  }

  void asleep(boolean now) {
    asleep = now;
  }

  boolean isAsleep() {
    return asleep;
  }

  /** Whether a doorbell has rung that no pass has seen yet. */
  boolean isRung() {
    lock.lock();
    try {
      for (SubmissionQueue sq : sqs) {
        if (sq.doorbell().isNews()) {
          return true;
        }
      }
      for (CompletionQueue cq : cqs) {
        if (cq.doorbell().isNews()) {
          return true;
        }
      }
      return false;
    } finally {
      lock.unlock();
    }
  }

  /** Whether completions wait for the host to free entries of their queue. */
  boolean holdsBack() {
    lock.lock();
    try {
      return Arrays.stream(cqs).anyMatch(CompletionQueue::holdsBack);
    } finally {
      lock.unlock();
    }
  }

  /** Ends the thread and waits for it, unless it is the caller. */
  void stop() {
    stopped = true;
    wake();
    Uninterrupted.join(thread);
  }

  /**
   * Closes the channels and frees the memory, the latter after the pass if one of this thread's is
   * under way. With the lock held; the controller does not work any more.
   */
  void close() {
    closed = true;
    channels.closeAll();
    freeAfterPass();
  }

  /** With the lock held by who calls this, and by a pass around it if there is one. */
  private void freeAfterPass() {
    if (lock.getHoldCount() == 1 && memory.scope().isAlive()) {
      memory.close();
    }
  }

  /** After a long quiet time: sleeps as long as it may, if it may. */
  private boolean sleep(IdleStrategy idle) {
    if (index > 0) {
      idleWatch.sleep(this);
      return true;
    }
    return switch (idleWatch.sleepUntilWoken(() -> !stopped)) {
      case NONE -> false;
      case OVER -> true;
      case WOKEN -> {
        idle.busy();
        yield true;
      }
    };
  }

  private void run() {
    IdleStrategy idle = new IdleStrategy();
    while (!stopped) {
      try {
        int work = pass();
        if (index == 0) {
          idleWatch.look(now);
        }
        if (work > 0) {
          idle.busy();
        } else if (!needed) {
          asleep = true;
          park(); // until a queue is added
          asleep = false;
        } else if (!idle.isLong(now, neededIn) || !sleep(idle)) {
          idle.rest(now, neededIn);
        }
      } catch (InternalError e) {
        // As in a pass: compiled code may learn of it only now.
        status.fatal("memory of the host is gone: " + e.getMessage());
      } catch (Throwable t) {
        // Nor must anything between the passes.
        status.internalError(t);
        LockSupport.parkNanos(this, SHORT_REST_NANOS);
      }
    }
  }
}
