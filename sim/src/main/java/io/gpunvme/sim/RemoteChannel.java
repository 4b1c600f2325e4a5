package io.gpunvme.sim;

import io.gpunvme.base.CloseAll;
import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.nvme.memory.RemotePort;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * One worker's way into the remote memory of one region. Guarded by the worker's lock.
 *
 * <p>It has two ports. Queue entries, lists and other small things go through one of them; data
 * goes through the other, so that a small copy does not wait for all the data before it. A
 * completion is never posted before its data nevertheless: the data's copies have ended by then.
 *
 * <p>When a port fails, both are closed (which ends what they were doing) and every use of the
 * channel throws {@link RemoteFailure} until the host maps the memory anew.
 */
final class RemoteChannel {
  private static final long NOTHING_POSTED = Long.MIN_VALUE;

  private final RemoteMemory memory;
  private final Consumer<RuntimeException> failures;
  private final Deque<RemoteCopy> copies = new ArrayDeque<>();
  private final List<MemorySegment> staging = new ArrayList<>();
  private @Nullable RemotePort small;
  private @Nullable RemotePort bulk;
  private @Nullable BounceRing bounce;
  private long posted = NOTHING_POSTED;
  private boolean closed;

  /**
   * @param failures told of each failure of a port
   */
  RemoteChannel(RemoteMemory memory, Consumer<RuntimeException> failures) {
    this.memory = memory;
    this.failures = failures;
  }

  // ---- small things

  /** Copies from the remote memory; returns when that is done. */
  void read(long offset, MemorySegment to) {
    RemotePort port = small();
    try {
      port.read(offset, to);
    } catch (RuntimeException e) {
      throw failed(e);
    }
  }

  /** Copies to the remote memory; returns when that is done. */
  void write(long offset, MemorySegment from) {
    RemotePort port = small();
    try {
      port.write(offset, from);
    } catch (RuntimeException e) {
      throw failed(e);
    }
  }

  /** Begins to copy to the remote memory; {@link #settle} waits for it. */
  void post(long offset, MemorySegment from) {
    RemotePort port = small();
    try {
      posted = port.startWrite(offset, from);
    } catch (RuntimeException e) {
      throw failed(e);
    }
  }

  /** Returns when everything posted has arrived. */
  void settle() {
    RemotePort port = small;
    if (port == null || posted == NOTHING_POSTED) {
      return;
    }
    try {
      while (!port.isDone(posted)) {
        Thread.yield();
      }
    } catch (RuntimeException e) {
      throw failed(e);
    }
  }

  /**
   * Fast host memory for {@link #read}, {@link #write} and {@link #post}, at least {@code bytes}.
   */
  MemorySegment takeStaging(long bytes) {
    for (int i = 0; i < staging.size(); i++) {
      if (staging.get(i).byteSize() >= bytes) {
        return staging.remove(i);
      }
    }
    RemotePort port = small();
    try {
      return port.bounce(bytes);
    } catch (RuntimeException e) {
      throw failed(e);
    }
  }

  /** Takes staging memory back; nothing posted from it is under way. */
  void giveBackStaging(MemorySegment piece) {
    staging.add(piece);
  }

  private RemotePort small() {
    RemotePort port = small;
    if (port == null) {
      port = open(RemotePort.Use.SMALL);
      small = port;
    }
    return port;
  }

  // ---- data

  /** Begins to copy data; {@link RemoteCopies} learn of its end. */
  long start(boolean toRemote, long offset, MemorySegment host) {
    RemotePort port = bulk();
    try {
      return toRemote ? port.startWrite(offset, host) : port.startRead(offset, host);
    } catch (RuntimeException e) {
      throw failed(e);
    }
  }

  /** Whether the data copy with this ticket is over; all are once the channel has failed. */
  private boolean isOver(RemoteCopy copy) {
    RemotePort port = bulk;
    if (port == null) {
      return true;
    }
    try {
      return port.isDone(copy.ticket());
    } catch (RuntimeException e) {
      failed(e);
      return true;
    }
  }

  /** Copies under way, oldest first. */
  Deque<RemoteCopy> copies() {
    return copies;
  }

  /** Removes and returns the oldest copy if it is over. */
  @Nullable RemoteCopy takeOver() {
    RemoteCopy oldest = copies.peek();
    if (oldest == null || !isOver(oldest)) {
      return null;
    }
    return copies.remove();
  }

  /** Whether the ports have failed, so that copies which are over may not have arrived. */
  boolean isBroken() {
    return closed;
  }

  /** Where data waits that has no place of its own in host memory. */
  BounceRing bounce() {
    BounceRing ring = bounce;
    if (ring == null || closed) {
      RemotePort port = bulk();
      try {
        ring = new BounceRing(port.bounce(BounceRing.BYTES));
      } catch (RuntimeException e) {
        throw failed(e);
      }
      bounce = ring;
    }
    return ring;
  }

  private RemotePort bulk() {
    RemotePort port = bulk;
    if (port == null) {
      port = open(RemotePort.Use.DATA);
      bulk = port;
    }
    return port;
  }

  // ---- the ports

  private RemotePort open(RemotePort.Use use) {
    if (closed) {
      throw new RemoteFailure(memory.name() + " cannot be reached any more");
    }
    try {
      return memory.openPort(use);
    } catch (RuntimeException e) {
      throw failed(e);
    }
  }

  private RemoteFailure failed(RuntimeException cause) {
    failures.accept(cause);
    try {
      close();
    } catch (RuntimeException e) {
      cause.addSuppressed(e);
    }
    return new RemoteFailure("copying to or from " + memory.name() + " failed: " + cause, cause);
  }

  /** Ends all copies and closes the ports. Idempotent. */
  void close() {
    closed = true;
    staging.clear();
    RemotePort first = small;
    RemotePort second = bulk;
    small = null;
    bulk = null;
    CloseAll.all(first, second);
  }
}
