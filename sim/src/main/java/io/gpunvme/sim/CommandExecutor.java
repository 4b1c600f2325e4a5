package io.gpunvme.sim;

/** Carries out commands of one command set. */
interface CommandExecutor {
  /** Returned by {@link #execute} when the completion comes later (asynchronous event requests). */
  int HOLD = -1;

  /** Returned by {@link #execute} when the command's data is on its way ({@link RemoteMover}). */
  int COPY = -2;

  /**
   * Executes a command. Called by the worker of the command's queue with that worker's lock held;
   * other workers may be executing other commands at the same time.
   *
   * <p>Never throws for anything the host did: an exception is a bug here and ends in CSTS.CFS.
   *
   * @param c its result goes to {@link SimCommand#dw0} and {@link SimCommand#dw1}
   * @return a 15-bit status field, 0 for success, or {@link #HOLD} or {@link #COPY}
   * @throws RemoteFailure if remote memory cannot be reached: a Data Transfer Error
   */
  int execute(SimCommand c, Worker w);
}
