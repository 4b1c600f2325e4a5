package io.gpunvme.sim;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/**
 * The word in which the host announces one queue's tail or head: the register, or after Doorbell
 * Buffer Config a word in the host's memory. Guarded by the queue's worker.
 *
 * <p>The register can be written through two windows, each of which keeps what was last stored
 * there; what changed last is the doorbell's value. So a queue needs one initiator at a time, and
 * another one only from the queue's creation on, when both windows are zero.
 */
final class Doorbell {
  private static final VarHandle INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();

  private final MemorySegment registers;
  private final MemorySegment peerRegisters;
  private final long offset;
  private @Nullable ShadowDoorbells shadow;
  private int last;
  private int lastOfPeer;
  private boolean byPeer;

  /**
   * @param registers the CPU's window
   * @param peerRegisters the peer's window
   * @param offset where the doorbell is in both
   */
  Doorbell(MemorySegment registers, MemorySegment peerRegisters, long offset) {
    this.registers = registers;
    this.peerRegisters = peerRegisters;
    this.offset = offset;
    clear();
  }

  /** Watches the host's memory from now on; what it holds at this moment is no news. */
  void shadow(ShadowDoorbells pages) {
    if (pages.covers(offset)) {
      shadow = pages;
      last = pages.read(offset, last);
      pages.announce(offset, last);
    }
  }

  /**
   * Whether the host has stored another value since the last call; {@link #value} is it.
   *
   * @param byOther whether a value from the other window than the last one's counts too
   */
  boolean changed(boolean byOther) {
    if (byPeer) {
      return changedByPeer() || (byOther && changedByCpu());
    }
    return changedByCpu() || (byOther && changedByPeer());
  }

  /** Whether the host has stored a value that {@link #changed} has not seen. */
  boolean isNews() {
    // Opaque: only whether there is something to look at; whoever looks acquires.
    int now = shadow == null ? (int) INT.getOpaque(registers, offset) : shadow.read(offset, last);
    return now != last || (int) INT.getOpaque(peerRegisters, offset) != lastOfPeer;
  }

  private boolean changedByCpu() {
    // Acquire: the host's release store of the doorbell is the other side; what it wrote to the
    // queue before is visible after this load.
    int now = shadow == null ? (int) INT.getAcquire(registers, offset) : shadow.read(offset, last);
    if (now == last) {
      return false;
    }
    last = now;
    byPeer = false;
    if (shadow != null) {
      shadow.announce(offset, now);
    }
    return true;
  }

  private boolean changedByPeer() {
    // Acquire: the peer's store is the other side; it released what it wrote to the queue before.
    int now = (int) INT.getAcquire(peerRegisters, offset);
    if (now == lastOfPeer) {
      return false;
    }
    lastOfPeer = now;
    byPeer = true;
    return true;
  }

  /** The value last seen, as the host stored it. */
  int value() {
    return byPeer ? lastOfPeer : last;
  }

  /** Whether the value last seen came through the peer's window. */
  boolean isByPeer() {
    return byPeer;
  }

  /**
   * The value last seen is wrong: puts back the one before it that was right, so that the same
   * value counts if it is stored again when it is right. A shadow doorbell stays as it is: that
   * memory is the host's, and a value stored there twice cannot be told from one stored once.
   *
   * @param accepted the last value that was right
   */
  void reject(int accepted) {
    // Compare and set: the host may have stored another value since, which must stay. It cannot
    // have stored the same one rightly: only what the worker does after this makes it right.
    if (byPeer) {
      if (INT.compareAndSet(peerRegisters, offset, lastOfPeer, accepted)) {
        lastOfPeer = accepted;
      }
    } else if (shadow == null && INT.compareAndSet(registers, offset, last, accepted)) {
      last = accepted;
    }
  }

  /** Zeroes the register: its queue is gone, or new. */
  void clear() {
    INT.setRelease(registers, offset, 0);
    INT.setRelease(peerRegisters, offset, 0);
  }
}
