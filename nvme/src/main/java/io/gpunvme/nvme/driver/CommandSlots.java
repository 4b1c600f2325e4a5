package io.gpunvme.nvme.driver;

/**
 * The command slots of a queue pair: which are taken, by what, since when.
 *
 * <p>A slot is free, in flight, or quarantined. Its CID is the slot number with a generation above
 * it that moves on whenever the slot is freed. Used by the one thread that drives the queue.
 */
final class CommandSlots {
  /** What a slot holds. */
  private enum State {
    /** No command. */
    FREE,
    /** A command that is with the controller. */
    IN_FLIGHT,
    /** A command whose deadline passed and whose fate is unknown: the CID must not be reused. */
    QUARANTINE
  }

  /** One slot; all of a command's fields lie together. */
  private static final class Slot {
    private State state = State.FREE;
    private int cid;
    private int nsid;
    private int opcode;
    private int dw0;
    private long userData;
    private long submittedNanos;
    private long slba;
    private long bytes;

    Slot(int number) {
      cid = number;
    }
  }

  private final Slot[] slots;
  private final int slotBits;

  /** Numbers of the free slots; the last of the first {@link #free} is taken next. */
  private final int[] freeSlots;

  private int free;
  private int quarantined;

  /** Gives every slot its first CID; {@link #reset} makes them free. */
  CommandSlots(int depth) {
    slots = new Slot[depth];
    freeSlots = new int[depth];
    slotBits = Math.max(1, 32 - Integer.numberOfLeadingZeros(depth - 1));
    for (int slot = 0; slot < depth; slot++) {
      slots[slot] = new Slot(slot);
    }
  }

  /** Frees all slots; generations stay where they are. */
  void reset() {
    int depth = slots.length;
    for (int i = 0; i < depth; i++) {
      freeSlots[i] = depth - 1 - i;
      slots[i].state = State.FREE;
    }
    free = depth;
    quarantined = 0;
  }

  /** How many slots are free. */
  int free() {
    return free;
  }

  /** The slot that {@link #claim} would take; only if one is free. */
  int next() {
    return freeSlots[free - 1];
  }

  /** Takes the {@link #next} slot for a command; returns its CID. */
  int claim(int slot, int opcode, int nsid, long slba, long bytes, long userData, long nowNanos) {
    free--;
    Slot s = slots[slot];
    s.state = State.IN_FLIGHT;
    s.userData = userData;
    s.submittedNanos = nowNanos;
    s.slba = slba;
    s.bytes = bytes;
    s.nsid = nsid;
    s.opcode = opcode;
    return s.cid;
  }

  /** The slot part of a CID; may be the depth or more if the CID is none of ours. */
  int slotOf(int cid) {
    return cid & ((1 << slotBits) - 1);
  }

  /** Whether the slot holds a command with exactly this CID. */
  boolean holds(int slot, int cid) {
    Slot s = slots[slot];
    return s.cid == cid && s.state != State.FREE;
  }

  boolean isFree(int slot) {
    return slots[slot].state == State.FREE;
  }

  /** Frees a slot; the next command in it has the next generation. */
  void release(int slot) {
    Slot s = slots[slot];
    if (s.state == State.QUARANTINE) {
      quarantined--;
    }
    s.cid = nextCid(s.cid);
    s.state = State.FREE;
    freeSlots[free++] = slot;
  }

  /** The same slot's next generation; FFFFh means "no command" in error log entries, so skip it. */
  private int nextCid(int cid) {
    int next = (cid + (1 << slotBits)) & 0xFFFF;
    return next == 0xFFFF ? (next + (1 << slotBits)) & 0xFFFF : next;
  }

  /** The oldest command in flight that is at least {@code timeoutNanos} old, or -1. */
  int expired(long nowNanos, long timeoutNanos) {
    int oldest = -1;
    long oldestAge = timeoutNanos;
    for (int slot = 0; slot < slots.length; slot++) {
      Slot s = slots[slot];
      if (s.state == State.IN_FLIGHT) {
        long age = nowNanos - s.submittedNanos;
        if (age >= oldestAge) {
          oldest = slot;
          oldestAge = age;
        }
      }
    }
    return oldest;
  }

  /** A command in flight becomes one whose fate is unknown. */
  void quarantine(int slot) {
    Slot s = slots[slot];
    if (s.state == State.IN_FLIGHT) {
      s.state = State.QUARANTINE;
      quarantined++;
    }
  }

  int quarantined() {
    return quarantined;
  }

  long userData(int slot) {
    return slots[slot].userData;
  }

  int dw0(int slot) {
    return slots[slot].dw0;
  }

  void dw0(int slot, int value) {
    slots[slot].dw0 = value;
  }

  int opcode(int slot) {
    return slots[slot].opcode;
  }

  int cid(int slot) {
    return slots[slot].cid;
  }

  int nsid(int slot) {
    return slots[slot].nsid;
  }

  long slba(int slot) {
    return slots[slot].slba;
  }

  long bytes(int slot) {
    return slots[slot].bytes;
  }

  long submittedNanos(int slot) {
    return slots[slot].submittedNanos;
  }
}
