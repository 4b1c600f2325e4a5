package io.gpunvme.nvme.driver;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.ChangedNamespaceList;
import io.gpunvme.nvme.spec.CommandsEffectsLog;
import io.gpunvme.nvme.spec.ErrorLogEntry;
import io.gpunvme.nvme.spec.FirmwareSlotLog;
import io.gpunvme.nvme.spec.LogId;
import io.gpunvme.nvme.spec.SmartLog;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** Get Log Page (Base 2.0, 5.16). Safe for all threads; results are copies on the heap. */
public final class LogPages {
  /** Longest log read at once. */
  public static final int MAX_BYTES = 16 << 20;

  /** Every controller moves this much with one command, whatever its MDTS. */
  private static final int CHUNK = 4096;

  private static final int RETAIN = 1 << 15;

  private final AdminQueue admin;

  LogPages(AdminQueue admin) {
    this.admin = admin;
  }

  /** The first {@code bytes} of a log page of the controller; lets its event happen again. */
  public MemorySegment read(int logId, int bytes) {
    return read(logId, Sqe.NSID_ALL, 0, bytes, false);
  }

  /**
   * Reads part of a log page.
   *
   * @param logId one of {@link LogId}
   * @param nsid the namespace, or {@link Sqe#NSID_ALL} for the controller
   * @param offset first byte, a multiple of 4; other than 0 only where LPA bit 2 is set
   * @param bytes how many, a multiple of 4, up to {@link #MAX_BYTES}; more than 4096 only where LPA
   *     bit 2 is set
   * @param retain whether the event that announced this page stays masked (RAE)
   */
  public MemorySegment read(int logId, int nsid, long offset, int bytes, boolean retain) {
    if (bytes <= 0 || bytes > MAX_BYTES || bytes % Integer.BYTES != 0) {
      throw new InvalidRequestException(
          bytes + " bytes of log are not a multiple of 4 in 4.." + MAX_BYTES);
    }
    if (offset < 0 || offset % Integer.BYTES != 0) {
      throw new InvalidRequestException("log offset " + offset + " is not a multiple of 4");
    }
    MemorySegment log = MemorySegment.ofArray(new byte[bytes]);
    for (int at = 0; at < bytes; at += CHUNK) {
      int part = Math.min(CHUNK, bytes - at);
      boolean last = at + part == bytes;
      MemorySegment data =
          admin.fetch(command(logId, nsid, offset + at, part, retain || !last), part);
      MemorySegment.copy(data, 0, log, at, part);
    }
    return log;
  }

  private static AdminCommand command(int logId, int nsid, long offset, int bytes, boolean retain) {
    int dwords = bytes / Integer.BYTES - 1;
    return AdminCommand.of(AdminOpcode.GET_LOG_PAGE)
        .nsid(nsid)
        .cdw10((logId & 0xFF) | (retain ? RETAIN : 0) | dwords << 16)
        .cdw11(dwords >>> 16)
        .cdw12((int) offset)
        .cdw13((int) (offset >>> 32));
  }

  /** SMART / Health Information of the controller. */
  public SmartLog smart() {
    return new SmartLog(read(LogId.SMART, SmartLog.SIZE));
  }

  /**
   * Error Information: the newest entries first; unused ones are left out.
   *
   * @param entries how many to ask for, at least 1; ELPE + 1 exist
   */
  public List<ErrorLogEntry> errors(int entries) {
    MemorySegment page = read(LogId.ERROR, entries * ErrorLogEntry.SIZE);
    List<ErrorLogEntry> list = new ArrayList<>();
    for (int i = 0; i < entries; i++) {
      ErrorLogEntry entry = ErrorLogEntry.at(page, i);
      if (entry.errorCount() != 0) {
        list.add(entry);
      }
    }
    return list;
  }

  /** Firmware Slot Information. */
  public FirmwareSlotLog firmwareSlots() {
    return new FirmwareSlotLog(read(LogId.FIRMWARE_SLOT, FirmwareSlotLog.SIZE));
  }

  /** Changed Namespace List: what changed since it was last read. */
  public ChangedNamespaceList changedNamespaces() {
    return new ChangedNamespaceList(read(LogId.CHANGED_NAMESPACES, ChangedNamespaceList.SIZE));
  }

  /** Commands Supported and Effects. */
  public CommandsEffectsLog commandsEffects() {
    return new CommandsEffectsLog(read(LogId.COMMANDS_EFFECTS, CommandsEffectsLog.SIZE));
  }
}
