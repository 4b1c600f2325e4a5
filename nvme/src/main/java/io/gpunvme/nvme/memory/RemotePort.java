package io.gpunvme.nvme.memory;

import java.lang.foreign.MemorySegment;

/**
 * Copies between one {@link RemoteMemory} and host memory, in the order in which they were started:
 * a copy is over only when all before it on the same port are.
 *
 * <p>Used by one thread at a time, not always the same one. Offsets and lengths are bytes inside
 * the remote memory, the length being that of the segment. Host memory that takes part in a copy
 * must stay as it is, and alive, until the copy is over.
 *
 * <p>An aligned unit of 16 bytes is copied whole: a poller of the remote memory never sees half of
 * one.
 *
 * <p>Every method may throw the owner's own unchecked exception when copying fails. The port is
 * then unusable and can only be closed.
 */
public interface RemotePort extends AutoCloseable {
  /** The use that a port is opened for. */
  enum Use {
    /** Few bytes that a thread waits for: they must not queue behind data. */
    SMALL,
    /** Data. */
    DATA
  }

  /** Copies from the remote memory; returns when the data has arrived in {@code to}. */
  void read(long offset, MemorySegment to);

  /** Copies to the remote memory; returns when code that runs there can see the data. */
  void write(long offset, MemorySegment from);

  /**
   * Begins to copy from the remote memory.
   *
   * @return a ticket, greater than every earlier one of this port
   */
  long startRead(long offset, MemorySegment to);

  /**
   * Begins to copy to the remote memory.
   *
   * @return a ticket, greater than every earlier one of this port
   */
  long startWrite(long offset, MemorySegment from);

  /**
   * Whether the copy with this ticket, and so every one before it, is over. Never blocks. Not every
   * ticket is asked for, and one may be asked for again.
   */
  boolean isDone(long ticket);

  /**
   * Host memory which this port's copies move fastest, e.g. pinned, if there is any. It belongs to
   * the port until that is closed, and to others after that. Aligned to 64 bytes, contents
   * undefined.
   *
   * <p>Copies from and to other host memory work too, and are as fast where the owner has arranged
   * for it (a simulated namespace that was pinned).
   *
   * @param bytes above 0
   */
  MemorySegment bounce(long bytes);

  /**
   * Waits until no copy of this port is running, and frees its resources. Idempotent; does not
   * throw for copies that failed.
   */
  @Override
  void close();
}
