package io.gpunvme.nvme.driver;

import java.util.concurrent.locks.LockSupport;

/**
 * The wait of a thread between two polls: first it spins, because the answer may be microseconds
 * away, then it yields the core to others, then it sleeps in short naps. For one thread.
 */
public final class Backoff {
  private static final int SPINS = 256;
  private static final int YIELDS = 256;
  private static final long NAP_NANOS = 50_000;

  private int rounds;

  /** Starts with spinning. */
  public Backoff() {}

  /** Something happened: start over. */
  public void reset() {
    rounds = 0;
  }

  /** Waits a little longer than the last time, up to some 100 us. */
  public void pause() {
    if (rounds < SPINS) {
      Thread.onSpinWait();
    } else if (rounds < SPINS + YIELDS) {
      Thread.yield();
    } else {
      LockSupport.parkNanos(NAP_NANOS);
      return;
    }
    rounds++;
  }
}
