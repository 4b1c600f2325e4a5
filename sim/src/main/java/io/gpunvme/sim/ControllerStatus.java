package io.gpunvme.sim;

import io.gpunvme.nvme.spec.Csts;
import org.jspecify.annotations.Nullable;

/**
 * What CSTS tells (Base 2.0, 3.1.3.6), as a function of time: ready and shutdown complete a while
 * after they were asked for.
 *
 * <p>Changed by register writes, which hold all worker locks, and by workers, which only ever set
 * fatal and gone; read by everybody without a lock.
 */
final class ControllerStatus {
  private static final int SHST_SHIFT = 2;

  // Volatile throughout: host threads that read CSTS, and workers, are each other's other side.
  private volatile Readiness readiness = Readiness.POWER_ON;
  private volatile boolean shutdown;
  private volatile long shutdownAt;
  private volatile boolean fatal;
  private volatile boolean gone;
  private volatile boolean closed;
  private volatile boolean subsystemReset;
  private volatile @Nullable String fatalReason;
  private volatile @Nullable Throwable internalError;
  private volatile @Nullable RuntimeException remoteFailure;

  /**
   * CC.EN and the RDY that follows it.
   *
   * @param enabled CC.EN, and what RDY becomes
   * @param before what RDY was
   * @param changeAt when RDY changes
   * @param stuck RDY never changes
   */
  private record Readiness(boolean enabled, boolean before, long changeAt, boolean stuck) {
    static final Readiness POWER_ON = new Readiness(false, false, 0, false);

    boolean ready(long now) {
      return stuck || now - changeAt < 0 ? before : enabled;
    }
  }

  /** CC.EN went to 1; ready after {@code delay} ns, or never if {@code stuck}. */
  void enable(long now, long delay, boolean stuck) {
    shutdown = false;
    readiness = new Readiness(true, false, now + delay, stuck);
  }

  /** CC.EN went to 0; not ready after {@code delay} ns, or ready for ever if {@code stuck}. */
  void disable(long now, long delay, boolean stuck) {
    readiness = new Readiness(false, isReady(now), now + delay, stuck);
    shutdown = false;
    fatal = false;
    fatalReason = null;
  }

  /** CC.SHN became non-zero; complete after {@code delay} ns. */
  void shutdown(long now, long delay) {
    shutdownAt = now + delay;
    shutdown = true;
  }

  /** Power-on state. */
  void reset() {
    readiness = Readiness.POWER_ON;
    shutdown = false;
    fatal = false;
    fatalReason = null;
    gone = false;
    subsystemReset = false;
  }

  /** Controller fatal: nothing is fetched or posted until the controller is disabled. */
  void fatal(String reason) {
    if (!fatal) {
      fatalReason = reason;
      fatal = true;
    }
  }

  /** A bug in this controller, which becomes fatal to it; the first one is remembered. */
  void internalError(Throwable error) {
    if (internalError == null) {
      internalError = error;
    }
    fatal("internal error: " + error);
  }

  /** Remote memory could not be reached; the first failure is remembered. */
  void remoteFailure(RuntimeException failure) {
    if (remoteFailure == null) {
      remoteFailure = failure;
    }
  }

  /** The device vanished from the bus. */
  void gone() {
    gone = true;
  }

  /** A fault rule about the whole controller fired. */
  void befall(FaultRule fault) {
    if (fault.action() == FaultRule.Action.CFS) {
      fatal("fault rule: " + fault);
    } else if (fault.action() == FaultRule.Action.GONE) {
      gone();
    }
  }

  /** Registers read all ones from now on; false if they did already. */
  synchronized boolean close() {
    boolean first = !closed;
    closed = true;
    return first;
  }

  void subsystemReset(boolean occurred) {
    subsystemReset = occurred;
  }

  /** Whether reads of registers return all ones. */
  boolean isUnreachable() {
    return gone || closed;
  }

  boolean isClosed() {
    return closed;
  }

  /** CSTS.RDY. */
  boolean isReady(long now) {
    return readiness.ready(now);
  }

  /** Whether commands execute and completions are posted. */
  boolean isActive(long now) {
    return !hasStopped() && readiness.enabled && readiness.ready(now);
  }

  /** Whether something ended all work: a pass under way does not begin another command. */
  boolean hasStopped() {
    return fatal || gone || closed;
  }

  /** Whether CC.SHN asked for a shutdown: no more commands are fetched. */
  boolean isShuttingDown() {
    return shutdown;
  }

  /** The register. */
  int csts(long now) {
    int shst = Csts.SHST_NORMAL;
    if (shutdown) {
      shst = now - shutdownAt >= 0 ? Csts.SHST_COMPLETE : Csts.SHST_OCCURRING;
    }
    return (isReady(now) ? Csts.RDY.mask() : 0)
        | (fatal ? Csts.CFS.mask() : 0)
        | shst << SHST_SHIFT
        | (subsystemReset ? Csts.NSSRO.mask() : 0);
  }

  /** Why CSTS.CFS is 1; null if it is not. */
  @Nullable String fatalReason() {
    return fatalReason;
  }

  /** The first bug that showed, ever; null if none did. */
  @Nullable Throwable internalError() {
    return internalError;
  }

  /** The first failure of remote memory, ever; null if there was none. */
  @Nullable RuntimeException remoteFailure() {
    return remoteFailure;
  }
}
