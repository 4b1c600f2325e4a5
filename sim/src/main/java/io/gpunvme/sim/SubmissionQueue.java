package io.gpunvme.sim;

import org.jspecify.annotations.Nullable;

/**
 * One submission queue: how far the host has announced it, how far it is fetched, which commands
 * are outstanding. Guarded by its worker's lock.
 */
final class SubmissionQueue {
  /** Commands beyond the queue's size that may be outstanding before fetching pauses. */
  private static final int BACKLOG = 1024;

  private static final int CIDS = 1 << 16;

  private final int qid;
  private final int size;
  private final RingMemory ring;
  private final CompletionQueue cq;
  private final Doorbell doorbell;
  private final long[] cids = new long[CIDS / Long.SIZE];
  private int head;
  private int tail;
  private int outstanding;
  private int reordering;
  private @Nullable SimCommand first;
  private @Nullable FaultRule stall;
  private long stallEnd;
  private boolean deleted;
  private @Nullable FetchAhead ahead;
  private @Nullable DmaRegion lastRegion;
  private int regionGeneration;

  /**
   * @param size entries, 2..65536
   */
  SubmissionQueue(int qid, int size, RingMemory ring, CompletionQueue cq, Doorbell doorbell) {
    this.qid = qid;
    this.size = size;
    this.ring = ring;
    this.cq = cq;
    this.doorbell = doorbell;
  }

  int qid() {
    return qid;
  }

  CompletionQueue cq() {
    return cq;
  }

  Doorbell doorbell() {
    return doorbell;
  }

  /** SQHD: the entry that will be fetched next. */
  int head() {
    return head;
  }

  /** Announced entries that are not fetched yet. */
  int announced() {
    int n = tail - head;
    return n < 0 ? n + size : n;
  }

  /**
   * Takes over the host's tail.
   *
   * @return whether the value is one that a correct host cannot have written; it is ignored then.
   *     The tail may move forward only, and only up to the entry before the head.
   */
  boolean tailIsWrong() {
    int value = doorbell.value();
    if (value < 0 || value >= size || advance(value) > size - 1 - announced()) {
      doorbell.reject(tail);
      return true;
    }
    tail = value;
    return false;
  }

  private int advance(int value) {
    int n = value - tail;
    return n < 0 ? n + size : n;
  }

  /** Whether another command may be fetched. */
  boolean mayFetch(long now, FaultPlan faults) {
    return outstanding < size + BACKLOG && (stall == null || !isStalled(now, faults));
  }

  /** The queue stands still because of a fault, for its duration or until the rule is removed. */
  void stall(FaultRule rule, long now) {
    stall = rule;
    stallEnd = now + rule.nanos();
  }

  private boolean isStalled(long now, FaultPlan faults) {
    FaultRule rule = stall;
    if (rule != null && (!faults.active(rule) || (rule.nanos() > 0 && now - stallEnd >= 0))) {
      stall = null;
    }
    return stall != null;
  }

  /**
   * Whether the host has stored another tail since the last call. One from the other window counts
   * only when everything announced before is fetched, so that each command belongs to the window
   * that announced it.
   */
  boolean isRung() {
    return doorbell.changed(head == tail);
  }

  /**
   * Makes the next entry, which must be announced, ready for {@link #fetch}.
   *
   * @return false if the queue is not mapped
   * @throws RemoteFailure if the entry is in remote memory that cannot be reached
   */
  boolean prepare() {
    FetchAhead entries = ahead();
    if (entries.isEmpty()) {
      if (!ring.ready()) {
        return false;
      }
      entries.load(head, announced());
    }
    return true;
  }

  /** Word {@code n} of the entry that {@link #prepare} has made ready. */
  long word(int n) {
    return ahead().word(head, n);
  }

  /** Gives the entry that {@link #prepare} has made ready and moves the head past it. */
  void fetch(long[] target) {
    ahead().take(head, target);
    int next = head + 1;
    head = next == size ? 0 : next;
  }

  private FetchAhead ahead() {
    FetchAhead entries = ahead;
    if (entries == null) {
      DmaRegion remote = ring.remote();
      entries = new FetchAhead(ring, remote == null ? null : cq.worker().channels().of(remote));
      ahead = entries;
    }
    return entries;
  }

  /**
   * Where the data of the last command began, for the next one's is mostly there too; null if
   * mappings have changed since.
   *
   * @param generation of the DMA space now
   */
  @Nullable DmaRegion lastRegion(int generation) {
    if (generation != regionGeneration) {
      lastRegion = null;
    }
    return lastRegion;
  }

  /** See {@link #lastRegion(int)}; {@code generation} was read before the region was found. */
  void lastRegion(DmaRegion region, int generation) {
    lastRegion = region;
    regionGeneration = generation;
  }

  /** Takes a command identifier; false if a command that has it is outstanding. */
  boolean claim(int cid) {
    long bit = 1L << cid;
    int word = cid >>> 6;
    if ((cids[word] & bit) != 0) {
      return false;
    }
    cids[word] |= bit;
    return true;
  }

  /** The command with this identifier has been completed. */
  void release(int cid) {
    cids[cid >>> 6] &= ~(1L << cid);
  }

  /** Adds a command that did not complete at once to the outstanding ones. */
  void link(SimCommand c) {
    c.linked = true;
    c.previous = null;
    c.next = first;
    if (first != null) {
      first.previous = c;
    }
    first = c;
    outstanding++;
  }

  void unlink(SimCommand c) {
    if (!c.linked) {
      return;
    }
    c.linked = false;
    SimCommand next = c.next;
    SimCommand previous = c.previous;
    if (next != null) {
      next.previous = previous;
    }
    if (previous == null) {
      first = next;
    } else {
      previous.next = next;
    }
    c.next = null;
    c.previous = null;
    outstanding--;
  }

  /** Any outstanding command; the others follow by {@link SimCommand#next}. */
  @Nullable SimCommand firstOutstanding() {
    return first;
  }

  /** Outstanding commands whose completions let others overtake (a fault). */
  int reordering() {
    return reordering;
  }

  void reordering(int count) {
    reordering = count;
  }

  /** The outstanding command with this identifier. */
  @Nullable SimCommand find(int cid) {
    SimCommand c = first;
    while (c != null && c.cid != cid) {
      c = c.next;
    }
    return c;
  }

  /** The queue is gone; nothing is fetched any more. */
  void delete() {
    deleted = true;
    doorbell.clear();
    if (ahead != null) {
      ahead.close();
      ahead = null;
    }
  }

  boolean isDeleted() {
    return deleted;
  }
}
