package io.gpunvme.nvme.driver;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.TimeUnit;

/**
 * What was done through a queue pair, or through several that kernels drive together, since the
 * controller was opened. One thread at a time writes, that which drives the queues or waits for
 * their kernel; any thread reads. Nothing is allocated and nothing waits, except for a reader.
 */
public final class QueueTraffic {
  /** Who drives the queues, which decides what is known. */
  public enum Kind {
    /** Threads of this process. */
    CPU(true),
    /** Kernels that carry out transfers; what they did is known when each has ended. */
    TRANSFERS(true),
    /** Kernels of users, which count their commands and no more. */
    KERNELS(false);

    private final boolean measured;

    Kind(boolean measured) {
      this.measured = measured;
    }

    /** Whether bytes, latencies and repetitions are known, not only commands. */
    public boolean measured() {
      return measured;
    }
  }

  /**
   * The numbers at one moment.
   *
   * @param submitted commands that the controller was told of
   * @param completed commands that the controller completed, with whatever status
   * @param readBytes moved to the host by commands that succeeded
   * @param writtenBytes moved from the host by commands that succeeded
   * @param latencies commands in {@code latencyNanos}
   * @param latencyNanos sum of the times from submission to completion
   * @param retries commands that were repeated
   * @param outstanding commands that are with the controller
   */
  public record Counts(
      long submitted,
      long completed,
      long readBytes,
      long writtenBytes,
      long latencies,
      long latencyNanos,
      long retries,
      long outstanding) {}

  private static final VarHandle LONGS =
      MethodHandles.arrayElementVarHandle(long[].class).withInvokeExactBehavior();

  /** Odd while numbers that belong together change. */
  private static final int VERSION = 0;

  private static final int SUBMITTED = 1;
  private static final int COMPLETED = 2;
  private static final int READ_BYTES = 3;
  private static final int WRITTEN_BYTES = 4;
  private static final int LATENCIES = 5;
  private static final int LATENCY_NANOS = 6;
  private static final int RETRIES = 7;
  private static final int OUTSTANDING = 8;
  private static final int LENGTH = 9;

  /** Attempts to read numbers that belong together before a writer is given the processor. */
  private static final int SPINS = 100;

  /** A writer that failed in the middle is not waited for. */
  static final long PATIENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final String queues;
  private final Kind kind;
  private final long[] values = new long[LENGTH];
  private volatile boolean closed;

  /**
   * @param queues identifiers of the queue pairs: {@code 3}, {@code 1-4}
   */
  QueueTraffic(String queues, Kind kind) {
    this.queues = queues;
    this.kind = kind;
  }

  /** Identifiers of the queue pairs: {@code 3}, {@code 1-4}. */
  public String queues() {
    return queues;
  }

  /** Who drives them. */
  public Kind kind() {
    return kind;
  }

  /** Whether there are no such queue pairs any more; the numbers stay. */
  public boolean isClosed() {
    return closed;
  }

  // ---- for the one who drives the queues

  /** The controller is told of commands; {@code outstanding} is how many it has then. */
  public void submitted(long commands, long outstanding) {
    begin();
    add(SUBMITTED, commands);
    set(OUTSTANDING, outstanding);
    end();
  }

  /** Commands are completed, of which each took its time. */
  public void completed(long commands, long nanos, long outstanding) {
    begin();
    add(COMPLETED, commands);
    add(LATENCIES, commands);
    add(LATENCY_NANOS, nanos);
    set(OUTSTANDING, outstanding);
    end();
  }

  /** Commands are completed, or else over, of which the latency is not known. */
  public void ended(long completed, long outstanding) {
    begin();
    add(COMPLETED, completed);
    set(OUTSTANDING, outstanding);
    end();
  }

  /** Bytes have arrived, those that were read and those that were written. */
  public void moved(long read, long written) {
    begin();
    add(READ_BYTES, read);
    add(WRITTEN_BYTES, written);
    end();
  }

  /** Commands are repeated. */
  public void retried(long commands) {
    begin();
    add(RETRIES, commands);
    end();
  }

  /** The queue pairs are gone. */
  public void close() {
    closed = true;
  }

  private void begin() {
    set(VERSION, values[VERSION] + 1 | 1);
    // counts() is the other side: it sees an odd version before it sees a part of what follows.
    VarHandle.storeStoreFence();
  }

  private void end() {
    // Release: who sees this version sees the numbers.
    LONGS.setRelease(values, VERSION, values[VERSION] + 1);
  }

  private void add(int index, long more) {
    set(index, values[index] + more);
  }

  private void set(int index, long value) {
    // Opaque: counts() is the other side, which needs whole values.
    LONGS.setOpaque(values, index, value);
  }

  /** Goes on from what earlier queue pairs with the same identifiers did. Before anybody reads. */
  void goOnFrom(Counts earlier) {
    values[SUBMITTED] = earlier.submitted;
    values[COMPLETED] = earlier.completed;
    values[READ_BYTES] = earlier.readBytes;
    values[WRITTEN_BYTES] = earlier.writtenBytes;
    values[LATENCIES] = earlier.latencies;
    values[LATENCY_NANOS] = earlier.latencyNanos;
    values[RETRIES] = earlier.retries;
  }

  // ---- for everybody

  /** The numbers, which belong together. Any thread. */
  public Counts counts() {
    long[] copy = new long[LENGTH];
    long start = System.nanoTime();
    for (int i = 0; !copyTo(copy) && System.nanoTime() - start < PATIENCE_NANOS; i++) {
      if (i < SPINS) {
        Thread.onSpinWait();
      } else {
        Thread.yield();
      }
    }
    return new Counts(
        copy[SUBMITTED],
        copy[COMPLETED],
        copy[READ_BYTES],
        copy[WRITTEN_BYTES],
        copy[LATENCIES],
        copy[LATENCY_NANOS],
        copy[RETRIES],
        copy[OUTSTANDING]);
  }

  /** Whether nobody wrote meanwhile. */
  private boolean copyTo(long[] copy) {
    // Acquire: the numbers are those of this version, or of a later one.
    long version = (long) LONGS.getAcquire(values, VERSION);
    for (int i = SUBMITTED; i < LENGTH; i++) {
      copy[i] = (long) LONGS.getOpaque(values, i);
    }
    VarHandle.loadLoadFence();
    return (version & 1) == 0 && version == (long) LONGS.getOpaque(values, VERSION);
  }
}
