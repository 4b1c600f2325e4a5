package io.gpunvme.nvme.sim;

/** Carries out commands of one command set. */
interface CommandExecutor {
  /** Returned by {@link #execute} when the completion comes later (asynchronous event requests). */
  int HOLD = -1;

  /**
   * Executes a command. Called by the worker of the command's queue with that worker's lock held;
   * other workers may be executing other commands at the same time.
   *
   * <p>Never throws for anything the host did: an exception is a bug here and ends in CSTS.CFS.
   *
   * @param c its result goes to {@link SimCommand#dw0} and {@link SimCommand#dw1}
   * @return a 15-bit status field, 0 for success, or {@link #HOLD}
   */
  int execute(SimCommand c, Worker w);
}
