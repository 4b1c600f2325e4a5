package io.gpunvme.gpu.transfer;

import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;

/** Gets the progress of a transfer, and may cancel it. Several threads call it. */
@FunctionalInterface
public interface TransferListener {
  /** Ignores progress. */
  TransferListener NONE = bytes -> {};

  /** Another {@code bytes} bytes have arrived. */
  void moved(long bytes);

  /**
   * A command has succeeded; called once for each, by the thread that saw it. Those of {@link
   * Initiator#move} count from 0, as if it had a plan.
   *
   * @param command its index in the plan
   * @param nanos its latency, as {@link TransferReport#latency} has it
   */
  default void completed(int command, long nanos) {}

  /** Whether to end the transfer early; called now and then. If true, the transfer fails. */
  default boolean isCancelled() {
    return false;
  }

  /**
   * The histogram that gets the transfer's latencies, ns; asked for once per transfer. By default a
   * new one. If transfers share one, it is an {@code AtomicHistogram}.
   */
  default Histogram latencies() {
    return newLatencies();
  }

  /** An empty histogram of up to an hour in ns, with three digits. */
  static Histogram newLatencies() {
    return new Histogram(LONGEST_NANOS, DIGITS);
  }

  /** Longer latencies count as this, ns. */
  long LONGEST_NANOS = TimeUnit.HOURS.toNanos(1);

  /** Digits of a latency that are kept. */
  int DIGITS = 3;
}
