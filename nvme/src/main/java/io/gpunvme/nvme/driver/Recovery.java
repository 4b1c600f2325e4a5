package io.gpunvme.nvme.driver;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Uninterrupted;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.driver.RecoveryOutcome.Rung;
import io.gpunvme.nvme.spec.AdminOpcode;
import java.util.concurrent.Semaphore;
import org.jspecify.annotations.Nullable;

/**
 * The ladder a queue pair in trouble climbs until it works again: poll once more, Abort, delete and
 * create the queue, reset the controller, fail.
 *
 * <p>Every rung is bounded by {@link ControllerOptions#recoveryTimeout} per command, the reset by
 * CAP.TO. Ladders of one controller run one after the other. A command whose fate the controller
 * did not tell is ended with status Command Aborted By Host, and only once the controller cannot
 * touch its data any more.
 */
final class Recovery {
  private final Lifecycle life;
  private final Semaphore aborts;

  /**
   * @param abortLimit Identify Controller's ACL: Aborts outstanding at once, zero-based
   */
  Recovery(Lifecycle life, int abortLimit) {
    this.life = life;
    this.aborts = new Semaphore(abortLimit + 1);
  }

  /** Climbs as far as needed. Called by the thread that drives {@code pair}. */
  RecoveryOutcome recover(QueuePair pair, CompletionSink sink) {
    long timeout = life.options().recoveryTimeout().toNanos();
    return climb(pair, new DrivenCommands(pair, sink, this, timeout));
  }

  /** Climbs from the third rung on: nobody drives the pair, and its owner knows its commands. */
  RecoveryOutcome recover(ExternalQueuePair pair) {
    return climb(pair, Outstanding.ELSEWHERE);
  }

  private RecoveryOutcome climb(IoQueuePair pair, Outstanding commands) {
    long start = System.nanoTime();
    life.lock().lock();
    try {
      RecoveryOutcome outcome = new Ladder(pair, commands, start).climb();
      NvmeController.LOG.log(
          System.Logger.Level.DEBUG, "recovery of queue pair {0}: {1}", pair.qid(), outcome);
      return outcome;
    } finally {
      life.lock().unlock();
    }
  }

  /**
   * Asks the controller to abort a command (Base 2.0, 5.1); its completion, if it comes, comes as
   * any other.
   *
   * @return whether the controller says it aborted the command
   */
  boolean abort(int qid, int cid) {
    long nanos = life.options().recoveryTimeout().toNanos();
    // Not even for an interrupt: the rungs above are a reset, which ends the commands of everybody.
    if (!Uninterrupted.tryAcquire(aborts, nanos)) {
      throw new NvmeTimeoutException("no Abort of other threads ended in time (ACL)");
    }
    try {
      AdminCommand command = AdminCommand.of(AdminOpcode.ABORT).cdw10(cid << 16 | qid);
      return (life.admin().execute(command, nanos) & 1) == 0;
    } finally {
      aborts.release();
    }
  }

  /** One climb. */
  private final class Ladder {
    private final IoQueuePair pair;
    private final Outstanding commands;
    private final long start;
    private int ended;

    /** What CSTS said, if that is why the queue pair is recovered. */
    private @Nullable String fatal;

    Ladder(IoQueuePair pair, Outstanding commands, long start) {
      this.pair = pair;
      this.commands = commands;
      this.start = start;
    }

    RecoveryOutcome climb() {
      try {
        RuntimeException out = life.outOfService();
        if (out != null && life.closed()) {
          return failure(Failures.again(out));
        }
        if (!life.queues().owns(pair)) {
          return failure(life.queues().stranger(pair));
        }
        life.queues().traffic().recovered();
        if (out != null) {
          return failed(Failures.again(out));
        }
        long resets = life.resets();
        String why = fatal();
        if (why == null) {
          if (!life.queues().knows(pair)) {
            return reclaim("the controller had been reset");
          }
          try {
            return climbToQueue();
          } catch (NvmeStatusException
              | NvmeTimeoutException
              | ControllerFatalException
              | CommandAbortedException e) {
            why = String.valueOf(e.getMessage());
          }
        }
        // An admin command that failed on the way up may have reset the controller already.
        if (life.resets() == resets && life.outOfService() == null) {
          life.reset();
        }
        return reclaim(why + "; the controller was reset");
      } catch (DeviceGoneException e) {
        life.takeOutOfService(e);
        RuntimeException out = life.outOfService();
        return failed(out == null ? e : out);
      } catch (NvmeException | InvalidRequestException e) {
        return failed(e);
      }
    }

    /** The rungs below the reset. */
    private RecoveryOutcome climbToQueue() {
      Rung settled = commands.settle();
      if (settled == null) {
        return replace();
      }
      return done(
          settled,
          settled == Rung.POLL ? "the completions had arrived" : "what had expired was aborted");
    }

    /** Why only a reset can help, or null. */
    private @Nullable String fatal() {
      try {
        life.registers().requireAlive("queue pair " + pair.qid());
        return null;
      } catch (ControllerFatalException e) {
        fatal = String.valueOf(e.getMessage());
        return fatal;
      }
    }

    private RecoveryOutcome replace() {
      IoQueues queues = life.queues();
      queues.deleteSubmissionQueue(pair);
      commands.collect();
      queues.deleteCompletionQueue(pair);
      pair.breakQueue();
      endOutstanding();
      queues.recreate(pair);
      return done(Rung.QUEUE, "the queue pair was deleted and created anew");
    }

    private RecoveryOutcome reclaim(String detail) {
      endOutstanding();
      life.queues().recreate(pair);
      return done(Rung.RESET, detail);
    }

    private RecoveryOutcome failed(RuntimeException e) {
      pair.breakQueue();
      endOutstanding();
      return failure(e);
    }

    private RecoveryOutcome failure(RuntimeException e) {
      return new RecoveryOutcome(
          Rung.FAILED, ended, System.nanoTime() - start, String.valueOf(e.getMessage()), e);
    }

    private void endOutstanding() {
      ended += commands.end(fatal);
    }

    private RecoveryOutcome done(Rung rung, String detail) {
      return new RecoveryOutcome(rung, ended, System.nanoTime() - start, detail, null);
    }
  }
}
