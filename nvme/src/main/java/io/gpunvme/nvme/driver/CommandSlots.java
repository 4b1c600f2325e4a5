package io.gpunvme.nvme.driver;

import static io.gpunvme.nvme.driver.QueuePairLayout.getInt;
import static io.gpunvme.nvme.driver.QueuePairLayout.getLong;
import static io.gpunvme.nvme.driver.QueuePairLayout.setInt;
import static io.gpunvme.nvme.driver.QueuePairLayout.setLong;

import java.lang.foreign.MemorySegment;

/**
 * The command slots of a queue pair: which are taken, by what, since when.
 *
 * <p>A slot is free, in flight, or quarantined. Its CID is the slot number with a generation above
 * it that moves on whenever the slot is freed. Used by the one thread that drives the queue.
 */
final class CommandSlots {
  private final MemorySegment state;
  private final int depth;
  private final int slotBits;

  /** Gives every slot its first CID; {@link #reset} makes them free. */
  CommandSlots(MemorySegment state, int depth) {
    this.state = state;
    this.depth = depth;
    this.slotBits = Math.max(1, 32 - Integer.numberOfLeadingZeros(depth - 1));
    setInt(state, QueuePairLayout.SLOT_BITS, slotBits);
    for (int slot = 0; slot < depth; slot++) {
      setInt(state, QueuePairLayout.slot(slot) + QueuePairLayout.SLOT_CID, slot);
    }
  }

  /** Frees all slots; generations stay where they are. */
  void reset() {
    for (int i = 0; i < depth; i++) {
      int slot = depth - 1 - i;
      setInt(state, QueuePairLayout.freeEntry(depth, i), slot);
      setState(slot, QueuePairLayout.FREE);
    }
    setInt(state, QueuePairLayout.FREE_COUNT, depth);
    setInt(state, QueuePairLayout.QUARANTINED, 0);
  }

  /** How many slots are free. */
  int free() {
    return getInt(state, QueuePairLayout.FREE_COUNT);
  }

  /** The slot that {@link #claim} would take; only if one is free. */
  int next() {
    return getInt(state, QueuePairLayout.freeEntry(depth, free() - 1));
  }

  /** Takes the {@link #next} slot for a command; returns its CID. */
  int claim(int slot, int opcode, int nsid, long slba, long userData, long nowNanos) {
    setInt(state, QueuePairLayout.FREE_COUNT, free() - 1);
    long s = QueuePairLayout.slot(slot);
    setInt(state, s + QueuePairLayout.SLOT_STATE, QueuePairLayout.IN_FLIGHT);
    setLong(state, s + QueuePairLayout.SLOT_USER_DATA, userData);
    setLong(state, s + QueuePairLayout.SLOT_SUBMITTED_NANOS, nowNanos);
    setLong(state, s + QueuePairLayout.SLOT_SLBA, slba);
    setInt(state, s + QueuePairLayout.SLOT_NSID, nsid);
    setInt(state, s + QueuePairLayout.SLOT_OPCODE, opcode);
    return getInt(state, s + QueuePairLayout.SLOT_CID);
  }

  /** The slot part of a CID; may be {@code depth} or more if the CID is none of ours. */
  int slotOf(int cid) {
    return cid & ((1 << slotBits) - 1);
  }

  /** Whether the slot holds a command with exactly this CID. */
  boolean holds(int slot, int cid) {
    return cid(slot) == cid && !isFree(slot);
  }

  boolean isFree(int slot) {
    return stateOf(slot) == QueuePairLayout.FREE;
  }

  /** Frees a slot; the next command in it has the next generation. */
  void release(int slot) {
    if (stateOf(slot) == QueuePairLayout.QUARANTINE) {
      setInt(state, QueuePairLayout.QUARANTINED, quarantined() - 1);
    }
    setInt(state, QueuePairLayout.slot(slot) + QueuePairLayout.SLOT_CID, nextCid(cid(slot)));
    setState(slot, QueuePairLayout.FREE);
    int free = free();
    setInt(state, QueuePairLayout.freeEntry(depth, free), slot);
    setInt(state, QueuePairLayout.FREE_COUNT, free + 1);
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
    for (int slot = 0; slot < depth; slot++) {
      if (stateOf(slot) == QueuePairLayout.IN_FLIGHT) {
        long age = nowNanos - submittedNanos(slot);
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
    if (stateOf(slot) == QueuePairLayout.IN_FLIGHT) {
      setState(slot, QueuePairLayout.QUARANTINE);
      setInt(state, QueuePairLayout.QUARANTINED, quarantined() + 1);
    }
  }

  int quarantined() {
    return getInt(state, QueuePairLayout.QUARANTINED);
  }

  private int stateOf(int slot) {
    return getInt(state, QueuePairLayout.slot(slot) + QueuePairLayout.SLOT_STATE);
  }

  private void setState(int slot, int value) {
    setInt(state, QueuePairLayout.slot(slot) + QueuePairLayout.SLOT_STATE, value);
  }

  long userData(int slot) {
    return getLong(state, QueuePairLayout.slot(slot) + QueuePairLayout.SLOT_USER_DATA);
  }

  int dw0(int slot) {
    return getInt(state, QueuePairLayout.slot(slot) + QueuePairLayout.SLOT_DW0);
  }

  void dw0(int slot, int value) {
    setInt(state, QueuePairLayout.slot(slot) + QueuePairLayout.SLOT_DW0, value);
  }

  int opcode(int slot) {
    return getInt(state, QueuePairLayout.slot(slot) + QueuePairLayout.SLOT_OPCODE);
  }

  int cid(int slot) {
    return getInt(state, QueuePairLayout.slot(slot) + QueuePairLayout.SLOT_CID);
  }

  int nsid(int slot) {
    return getInt(state, QueuePairLayout.slot(slot) + QueuePairLayout.SLOT_NSID);
  }

  long slba(int slot) {
    return getLong(state, QueuePairLayout.slot(slot) + QueuePairLayout.SLOT_SLBA);
  }

  long submittedNanos(int slot) {
    return getLong(state, QueuePairLayout.slot(slot) + QueuePairLayout.SLOT_SUBMITTED_NANOS);
  }
}
