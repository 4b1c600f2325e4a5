package io.gpunvme.gpu.queue;

import io.gpunvme.nvme.spec.IoOpcode;
import java.lang.foreign.MemorySegment;

/**
 * One entry of a device queue's error log, written by a kernel ({@code gpunvme::ErrorRecord}).
 *
 * @param kind the kind of error
 * @param status the command's status, see {@link DeviceStatus}
 * @param qid the queue pair
 * @param cid the command identifier of the completion or command
 * @param slba first logical block of the command that the slot held last. 0, as are opcode and
 *     user, if the command is unknown: {@link Kind#UNKNOWN}, {@link Kind#MALFORMED}, and {@link
 *     Kind#STALE} of shared queues, whose slots another thread may be filling meanwhile
 * @param opcode its opcode
 * @param user the kernel's own number for it (exclusive queues)
 */
public record DeviceError(
    Kind kind, int status, int qid, int cid, long slba, int opcode, int user) {
  /** {@code namespace trouble}. */
  public enum Kind {
    /** A command failed. */
    STATUS("failed"),
    /** A command was quarantined: its deadline passed, or the host said stop. */
    TIMEOUT("did not complete"),
    /** The completion of a quarantined command arrived late. */
    LATE("completed late"),
    /** A completion of a command that was over: a duplicate, or from before a reset. */
    STALE("was completed again"),
    /** A completion with a CID that no slot has. */
    UNKNOWN("was completed, but is unknown"),
    /** A completion with another queue's SQID. */
    MALFORMED("was completed for another queue");

    private final String text;

    Kind(String text) {
      this.text = text;
    }

    static Kind of(int number) {
      int index = number - 1;
      return index >= 0 && index < values().length ? values()[index] : UNKNOWN;
    }
  }

  /** Reads a record. */
  static DeviceError read(MemorySegment log, long offset) {
    return new DeviceError(
        Kind.of(DeviceLayout.getInt(log, offset + DeviceLayout.Errors.KIND)),
        DeviceLayout.getInt(log, offset + DeviceLayout.Errors.STATUS),
        DeviceLayout.getInt(log, offset + DeviceLayout.Errors.QID),
        DeviceLayout.getInt(log, offset + DeviceLayout.Errors.CID),
        DeviceLayout.getLong(log, offset + DeviceLayout.Errors.SLBA),
        DeviceLayout.getInt(log, offset + DeviceLayout.Errors.OPCODE),
        DeviceLayout.getInt(log, offset + DeviceLayout.Errors.USER));
  }

  /** One line, e.g. {@code Read at LBA 8 failed: LBA Out of Range (...) (queue 1, CID 17)}. */
  @Override
  public String toString() {
    String command = tellsCommand() ? IoOpcode.name(opcode) + " at LBA " + slba : "a command";
    return "%s %s: %s (queue %d, CID %d)"
        .formatted(command, kind.text, DeviceStatus.describe(status), qid, cid);
  }

  private boolean tellsCommand() {
    return switch (kind) {
      case STATUS, TIMEOUT, LATE -> true;
      case STALE -> opcode != 0 || slba != 0;
      case UNKNOWN, MALFORMED -> false;
    };
  }
}
