package io.gpunvme.sim;

/**
 * When the host is told of completions (Base 2.0, 3.5): by MSI-X messages if it enabled them, else
 * by the INTx line, which stays asserted as long as a completion queue with interrupts has entries
 * the host has not consumed and its vector is not masked.
 *
 * <p>Its monitor is taken inside worker locks and takes only the MSI-X table's.
 */
final class Interrupts {
  private static final int LINE_VECTORS = 32;

  private final MsixTable msix;
  private final int[] waiting = new int[LINE_VECTORS];
  private InterruptSink sink = InterruptSink.NONE;
  private int masked;
  private boolean lineDisabled;
  private boolean messages;
  private boolean line;

  Interrupts(MsixTable msix) {
    this.msix = msix;
  }

  synchronized void sink(InterruptSink receiver) {
    sink = receiver;
    msix.sink(receiver);
  }

  synchronized InterruptSink sink() {
    return sink;
  }

  /** Tells the host what happened to a queue since the last call; in its worker's pass. */
  void update(CompletionQueue cq, SimStats.Stripe stats) {
    if (cq.interruptDue()) {
      cq.interruptDue(false);
      stats.add(SimStats.Counter.INTERRUPTS, 1);
      msix.send(cq.vector());
    }
    if (cq.isWaiting() == cq.isEmpty()) {
      cq.waiting(!cq.isEmpty());
      count(cq, cq.isWaiting() ? 1 : -1);
    }
  }

  /** A queue is deleted; with its worker's lock held. */
  void remove(CompletionQueue cq) {
    if (cq.isWaiting()) {
      cq.waiting(false);
      count(cq, -1);
    }
  }

  private synchronized void count(CompletionQueue cq, int n) {
    waiting[cq.vector() & (LINE_VECTORS - 1)] += n;
    updateLine();
  }

  /** INTMS: masks vectors. */
  synchronized void mask(int vectors) {
    masked |= vectors;
    updateLine();
  }

  /** INTMC: unmasks vectors. */
  synchronized void unmask(int vectors) {
    masked &= ~vectors;
    updateLine();
  }

  /** INTMS and INTMC read alike. */
  synchronized int masked() {
    return masked;
  }

  /** Interrupt Disable of the Command register, MSI-X Enable and Function Mask changed. */
  synchronized void control(boolean disableLine, boolean enableMessages, boolean maskMessages) {
    lineDisabled = disableLine;
    messages = enableMessages;
    msix.control(enableMessages, maskMessages);
    updateLine();
  }

  /** Interrupt Status of the Status register: what the line would be if it were not disabled. */
  synchronized boolean isPending() {
    return !messages && anyWaiting();
  }

  /** MSI-X is enabled. */
  synchronized boolean usesMessages() {
    return messages;
  }

  /** Vectors a completion queue may name. */
  int vectors() {
    return msix.vectors();
  }

  /** Controller reset; the queues are gone already. */
  synchronized void reset() {
    masked = 0;
    msix.forgetPending();
    updateLine();
  }

  private boolean anyWaiting() {
    for (int v = 0; v < LINE_VECTORS; v++) {
      if (waiting[v] > 0 && (masked & 1 << v) == 0) {
        return true;
      }
    }
    return false;
  }

  private void updateLine() {
    boolean now = !lineDisabled && !messages && anyWaiting();
    if (now != line) {
      line = now;
      sink.level(now);
    }
  }
}
