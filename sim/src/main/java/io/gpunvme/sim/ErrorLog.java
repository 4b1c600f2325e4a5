package io.gpunvme.sim;

import io.gpunvme.nvme.spec.ErrorLogEntry;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;

/**
 * The Error Information log (Base 2.0, 5.16.1.2): the latest failed commands. Survives resets.
 *
 * <p>Written by all workers, read by worker 0; the monitor is a leaf.
 */
final class ErrorLog {
  private final int capacity;
  private final MemorySegment ring;
  private long count;
  private long mediaErrors;

  /**
   * @param elpe ELPE, 0-based
   */
  ErrorLog(int elpe) {
    capacity = elpe + 1;
    ring = MemorySegment.ofArray(new long[capacity * (ErrorLogEntry.SIZE / Long.BYTES)]);
  }

  /** Whether a status makes an entry; what the host itself brought about does not. */
  static boolean isLogged(int status) {
    return !Status.ok(status)
        && StatusCode.of(status) != StatusCode.ABORT_REQUESTED
        && StatusCode.of(status) != StatusCode.ABORTED_SQ_DELETION;
  }

  /** Adds an entry for a command that ends with {@code status}. */
  synchronized void add(SimCommand c, int status) {
    if (Status.sct(status) == Status.SCT_MEDIA
        && StatusCode.of(status) != StatusCode.COMPARE_FAILURE) {
      mediaErrors++;
    }
    MemorySegment slot = slot(count);
    slot.fill((byte) 0);
    count++;
    new ErrorLogEntry(slot)
        .set(ErrorLogEntry.ERROR_COUNT, count)
        .set(ErrorLogEntry.SQID, c.sqid)
        .set(ErrorLogEntry.CID, c.cid)
        .status(status)
        .set(ErrorLogEntry.PARAMETER_ERROR_LOCATION, ErrorLogEntry.LOCATION_NONE)
        .set(ErrorLogEntry.NSID, Sqe.nsid(c.sqe, 0))
        .set(ErrorLogEntry.LBA, FaultMatch.hasLbaRange(c.sqid, c.opcode) ? Sqe.slba(c.sqe, 0) : 0);
  }

  private MemorySegment slot(long index) {
    return ring.asSlice(index % capacity * ErrorLogEntry.SIZE, ErrorLogEntry.SIZE);
  }

  /** Bytes in the page. */
  int size() {
    return capacity * ErrorLogEntry.SIZE;
  }

  /** Writes the page, latest entry first, to zeroed memory. */
  synchronized void render(MemorySegment page) {
    long entries = Math.min(count, capacity);
    for (int i = 0; i < entries; i++) {
      MemorySegment.copy(
          slot(count - 1 - i), 0, page, (long) i * ErrorLogEntry.SIZE, ErrorLogEntry.SIZE);
    }
  }

  /** Entries ever made. */
  synchronized long count() {
    return count;
  }

  /** Commands that failed with a media error. */
  synchronized long mediaErrors() {
    return mediaErrors;
  }
}
