package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;

/** An entry of the Error Information log page: 64 bytes, the newest first (Base 2.0, 5.16.1.2). */
public final class ErrorLogEntry extends View<ErrorLogEntry> {
  /** Bytes of the structure. */
  public static final int SIZE = 64;

  /** {@link #PARAMETER_ERROR_LOCATION} of an error that no field of the command is to blame for. */
  public static final int LOCATION_NONE = 0xFFFF;

  private static final FieldTable TABLE = new FieldTable();

  public static final Field ERROR_COUNT =
      TABLE.number(
          "ERROR_COUNT",
          0,
          8,
          "Error Count: unique over the life of the controller, 0 an unused entry");
  public static final Field SQID = TABLE.number("SQID", 8, 2, "Submission Queue ID");
  public static final Field CID = TABLE.number("CID", 10, 2, "Command ID");
  public static final Field STATUS_FIELD =
      TABLE.flags("STATUS_FIELD", 12, 2, "Status Field in bits 15:1, phase tag in bit 0");
  public static final Field PARAMETER_ERROR_LOCATION =
      TABLE.flags(
          "PARAMETER_ERROR_LOCATION",
          14,
          2,
          "Parameter Error Location: byte in bits 7:0, bit in bits 10:8; FFFFh not specific");
  public static final Field LBA = TABLE.number("LBA", 16, 8, "first LBA with the error");
  public static final Field NSID = TABLE.number("NSID", 24, 4, "Namespace");
  public static final Field VENDOR_SPECIFIC =
      TABLE.flags(
          "VENDOR_SPECIFIC", 28, 1, "Vendor Specific Information Available: a log page, 0 none");
  public static final Field TRTYPE = TABLE.number("TRTYPE", 29, 1, "Transport Type");
  public static final Field COMMAND_SPECIFIC =
      TABLE.flags("COMMAND_SPECIFIC", 32, 8, "Command Specific Information");
  public static final Field TRANSPORT_SPECIFIC =
      TABLE.flags("TRANSPORT_SPECIFIC", 40, 2, "Transport Type Specific Information");

  /**
   * Wraps the first 64 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public ErrorLogEntry(MemorySegment segment) {
    super(segment, SIZE, TABLE);
  }

  /** Returns entry {@code index} of a log page. */
  public static ErrorLogEntry at(MemorySegment page, int index) {
    return new ErrorLogEntry(page.asSlice((long) index * SIZE, SIZE));
  }

  /** The 15-bit status, see {@link Status}. */
  public int status() {
    return getInt(STATUS_FIELD) >>> 1;
  }

  /** Sets the 15-bit status; the phase tag stays. */
  public ErrorLogEntry status(int status) {
    return set(STATUS_FIELD, (status << 1) | (getInt(STATUS_FIELD) & 1));
  }
}
