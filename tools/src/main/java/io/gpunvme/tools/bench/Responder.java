package io.gpunvme.tools.bench;

/**
 * The least a controller can do, for measuring an initiator: it reads every SQE, checks and counts
 * it, and echoes its CID. It moves no data and knows one command, the benchmarks' Read. Answers
 * from its making to {@link #end}.
 */
interface Responder extends AutoCloseable {
  /** Stops answering and says what was answered; the queues are at rest then. Idempotent. */
  ResponderCounts end();

  /** Ends it if it still runs. */
  @Override
  default void close() {
    end();
  }
}
