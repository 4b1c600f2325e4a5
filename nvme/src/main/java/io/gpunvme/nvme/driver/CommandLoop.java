package io.gpunvme.nvme.driver;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.spec.Status;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Runs the commands of a source over queue pairs: as many in flight as the queues are deep, each
 * repeated if the controller allows it, queues recovered when a command expires. When {@link #run}
 * returns, nothing is outstanding any more, whatever has failed.
 *
 * <p>One thread drives it and its queues. Nothing is allocated unless something goes wrong: a
 * command's ticket and the count of its attempts travel in the command's user data.
 */
public final class CommandLoop implements CompletionSink {
  /** The value of {@link Source#take} when all commands are taken. */
  public static final long NONE = -1;

  /** Tickets are below this. */
  public static final long TICKETS = 1L << 56;

  /** How often commands are checked for their deadlines, however busy the queues are. */
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

  /** The same while nothing completes. */
  private static final long IDLE_LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  /** Rounds between two looks at the clock while there is progress. */
  private static final int ROUNDS_PER_CLOCK = 64;

  private static final int ABANDON_ROUNDS = 3;
  private static final int ATTEMPT_SHIFT = 56;
  private static final CompletionSink DISCARD = (queue, slot, status) -> {};

  /** The source of the commands. Several loops may share one and call its methods. */
  public interface Source {
    /** The ticket of the next command, 0..{@link #TICKETS} - 1, or {@link #NONE}. */
    long take();

    /** Whether {@link #take} may have another one. */
    boolean hasMore();

    /**
     * Submits a command, with {@code userData} as its user data.
     *
     * @return as {@link QueuePair#submitIo}
     */
    int submit(QueuePair queue, long ticket, long userData);

    /** A command has succeeded; called inside {@link CompletionSink#completed}. */
    void done(QueuePair queue, int slot, long ticket);

    /**
     * Something failed for good, here. Only the first failure counts; from now on {@link #stopped}.
     */
    void fail(Throwable failure);

    /** Whether it failed, here or elsewhere: nothing new is submitted then. */
    boolean stopped();

    /** Called now and then, to look for a reason to end early. */
    void look();
  }

  private final NvmeController controller;
  private final List<QueuePair> queues;
  private final int retries;
  private final Backoff backoff = new Backoff();

  /** Commands to be repeated; each was in flight, or is the one just taken. */
  private final long[] again;

  private int againCount;
  private Source source = Idle.SOURCE;
  private long retried;
  private long recoveries;
  private @Nullable RecoveryOutcome lastRecovery;

  /**
   * Makes a loop for any number of runs.
   *
   * @param queues only this loop drives them while it runs
   * @param retries how often a command is repeated, 0..127
   */
  public CommandLoop(NvmeController controller, List<QueuePair> queues, int retries) {
    this.controller = controller;
    this.queues = List.copyOf(queues);
    this.retries = retries;
    this.again = new long[queues.stream().mapToInt(QueuePair::depth).sum() + 1];
  }

  /** Commands repeated so far. */
  public long retried() {
    return retried;
  }

  /** The number of recoveries. */
  public long recoveries() {
    return recoveries;
  }

  /** The last time the ladder was climbed, or null. */
  public @Nullable RecoveryOutcome lastRecovery() {
    return lastRecovery;
  }

  /** Runs all commands of the source. Failures go to the source; this never throws them. */
  public void run(Source commands) {
    source = commands;
    againCount = 0;
    backoff.reset();
    try {
      loop();
      // The last doorbell's; those before have shown in the loop.
      Mapping.meetFaults();
    } catch (Throwable e) {
      // Errors too: a loop that dies in silence would leave commands at work in the caller's
      // buffer.
      commands.fail(reason(e));
      abandonAll(commands);
    } finally {
      source = Idle.SOURCE;
    }
  }

  private Throwable reason(Throwable e) {
    return e instanceof InternalError && controller.function().memoryGone()
        ? new DeviceGoneException(
            controller.function().name() + " is gone: its doorbells are no memory any more")
        : e;
  }

  private void loop() {
    long looked = System.nanoTime();
    boolean idle = true;
    for (int round = 1; ; round++) {
      boolean busy = false;
      boolean progress = false;
      boolean broken = false;
      for (int i = 0; i < queues.size(); i++) {
        QueuePair queue = queues.get(i);
        fill(queue);
        int before = queue.inFlight();
        queue.poll(this);
        // Stale completions are no progress: a flood of them must not keep time from being looked
        // at.
        progress |= queue.inFlight() != before;
        busy |= queue.inFlight() > 0;
        broken |= queue.state() != QueuePair.State.READY;
      }
      if (!busy && (source.stopped() || (againCount == 0 && !source.hasMore()))) {
        return;
      }
      idle &= !progress;
      if (progress) {
        backoff.reset();
      } else {
        backoff.pause();
      }
      if (broken) {
        mend(false);
      }
      if (!progress || round % ROUNDS_PER_CLOCK == 0) {
        long now = System.nanoTime();
        if (now - looked >= (idle ? IDLE_LOOK_NANOS : LOOK_NANOS)) {
          looked = now;
          mend(idle && controller.troubled());
          idle = true;
          source.look();
        }
      }
    }
  }

  private void fill(QueuePair queue) {
    if (source.stopped()) {
      return;
    }
    try {
      while (queue.hasRoom()) {
        long ticket = againCount > 0 ? again[--againCount] : source.take();
        if (ticket == NONE) {
          break;
        }
        // The number of attempts is above the ticket.
        if (source.submit(queue, ticket & (TICKETS - 1), ticket) < 0) {
          // Another thread's reset broke the queue between the question and the submission.
          again[againCount++] = ticket;
          break;
        }
      }
    } catch (NvmeException | InvalidRequestException e) {
      // This command was refused before it was submitted; the others end as they do.
      source.fail(e);
    }
    queue.ring();
  }

  @Override
  public void completed(QueuePair queue, int slot, int status) {
    long ticket = queue.userData(slot);
    if (Status.ok(status)) {
      source.done(queue, slot, ticket & (TICKETS - 1));
      return;
    }
    if (source.stopped()) {
      return;
    }
    int attempt = (int) (ticket >>> ATTEMPT_SHIFT);
    if (CompletionPolicy.mayRetry(status) && attempt < retries) {
      retried++;
      queue.traffic().retried(1);
      again[againCount++] = ticket + TICKETS;
    } else {
      source.fail(CompletionPolicy.failure(queue, slot, status, attempt + 1));
    }
  }

  /**
   * Brings back queues that were reset under us, hold commands past their deadline, or belong to a
   * controller that says itself that waiting is pointless.
   */
  private void mend(boolean troubled) {
    long now = System.nanoTime();
    for (int i = 0; i < queues.size(); i++) {
      QueuePair queue = queues.get(i);
      if (troubled || queue.state() != QueuePair.State.READY || queue.expired(now) >= 0) {
        recoveries++;
        RecoveryOutcome outcome = controller.recover(queue, this);
        lastRecovery = outcome;
        if (!outcome.recovered()) {
          throw Objects.requireNonNull(outcome.failure());
        }
      }
    }
  }

  /** An error in the middle of one recovery keeps no other from its own, nor from another try. */
  private void abandonAll(Source commands) {
    boolean again = true;
    for (int round = 0; again && round < ABANDON_ROUNDS; round++) {
      again = false;
      for (int i = 0; i < queues.size(); i++) {
        try {
          abandon(queues.get(i));
        } catch (Throwable e) {
          commands.fail(e);
          again = true;
        }
      }
    }
  }

  /**
   * After a failure: nothing may stay with the controller when the caller gets its buffer back.
   * What recovery cannot take back, a controller that is gone or stopped will not complete either.
   */
  private void abandon(QueuePair queue) {
    if (queue.inFlight() == 0) {
      return;
    }
    queue.breakQueue();
    RuntimeException failure = controller.recover(queue, DISCARD).failure();
    if (failure != null) {
      source.fail(failure);
    }
  }

  /** The source between two runs. */
  private enum Idle implements Source {
    SOURCE;

    @Override
    public long take() {
      return NONE;
    }

    @Override
    public boolean hasMore() {
      return false;
    }

    @Override
    public int submit(QueuePair queue, long ticket, long userData) {
      throw new IllegalStateException("nothing to submit");
    }

    @Override
    public void done(QueuePair queue, int slot, long ticket) {}

    @Override
    public void fail(Throwable failure) {}

    @Override
    public boolean stopped() {
      return true;
    }

    @Override
    public void look() {}
  }
}
