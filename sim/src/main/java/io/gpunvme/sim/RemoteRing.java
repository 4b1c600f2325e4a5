package io.gpunvme.sim;

import io.gpunvme.nvme.spec.Cqe;
import java.lang.foreign.MemorySegment;

/**
 * The entries of a completion queue in remote memory as the controller has written them, and which
 * of them are still to be copied there: those from {@code sent} to the queue's tail, all at once at
 * the end of a pass. Guarded by the worker's lock.
 *
 * <p>Copying goes on while the worker does other things. That is safe: an entry changes here only
 * after the host has consumed it, so after it arrived.
 */
final class RemoteRing {
  private final RingMemory ring;
  private final RemoteChannel channel;
  private final MemorySegment entries;
  private final int size;
  private int sent;

  RemoteRing(RingMemory ring, RemoteChannel channel, int size) {
    this.ring = ring;
    this.channel = channel;
    this.size = size;
    entries = channel.takeStaging((long) size * Cqe.SIZE);
  }

  /** The entries, one after the other. */
  MemorySegment memory() {
    return entries;
  }

  /** Whether the entries can be touched: the channel's memory goes with the channel. */
  boolean isUsable() {
    return !channel.isBroken();
  }

  /** Whether entries before {@code tail} are still to be sent. */
  boolean isBehind(int tail) {
    return sent != tail;
  }

  /**
   * Begins to copy the entries before {@code tail}; the ring is mapped.
   *
   * @throws RemoteFailure if they cannot be copied
   */
  void send(int tail) {
    while (sent != tail) {
      int n = ring.run(sent, (tail > sent ? tail : size) - sent);
      channel.post(ring.offset(sent), entries.asSlice((long) sent * Cqe.SIZE, (long) n * Cqe.SIZE));
      sent += n;
      if (sent == size) {
        sent = 0;
      }
    }
  }

  /** Returns when everything sent has arrived. */
  void settle() {
    channel.settle();
  }

  /** Copies only dword 3 of the entry at {@code tail}, the next one, and counts it as sent. */
  void sendPhase(int tail) {
    send(tail);
    long at = (long) tail * Cqe.SIZE + Cqe.DW3;
    channel.write(ring.offset(tail) + Cqe.DW3, entries.asSlice(at, Integer.BYTES));
    sent = tail + 1 == size ? 0 : tail + 1;
  }

  /** Copies one entry that was sent before and has been changed since. */
  void sendAgain(int index) {
    channel.write(ring.offset(index), entries.asSlice((long) index * Cqe.SIZE, Cqe.SIZE));
  }

  /** The queue is gone; nothing is under way. */
  void close() {
    if (isUsable()) {
      channel.giveBackStaging(entries);
    }
  }
}
