package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * An entry of the Error Information log page: 64 bytes, the newest first (Base 2.0, 5.16.1.2).
 * Setters take the unit of the getter and return this view.
 */
public final class ErrorLogEntry extends View {
  /** Bytes of the structure. */
  public static final int SIZE = 64;

  /** {@link #parameterErrorLocation()} of an error that no field of the command is to blame for. */
  public static final int LOCATION_NONE = 0xFFFF;

  private static final FieldTable TABLE = new FieldTable();

  private static final Field ERROR_COUNT =
      TABLE.number(
          "ERROR_COUNT",
          0,
          8,
          "Error Count: unique over the life of the controller, 0 an unused entry");
  private static final Field SQID = TABLE.number("SQID", 8, 2, "Submission Queue ID");
  private static final Field CID = TABLE.number("CID", 10, 2, "Command ID");
  private static final Field STATUS_FIELD =
      TABLE.flags("STATUS_FIELD", 12, 2, "Status Field in bits 15:1, phase tag in bit 0");
  private static final Field PARAMETER_ERROR_LOCATION =
      TABLE.flags(
          "PARAMETER_ERROR_LOCATION",
          14,
          2,
          "Parameter Error Location: byte in bits 7:0, bit in bits 10:8; FFFFh not specific");
  private static final Field LBA = TABLE.number("LBA", 16, 8, "first LBA with the error");
  private static final Field NSID = TABLE.number("NSID", 24, 4, "Namespace");
  private static final Field VENDOR_SPECIFIC =
      TABLE.flags(
          "VENDOR_SPECIFIC", 28, 1, "Vendor Specific Information Available: a log page, 0 none");
  private static final Field TRTYPE = TABLE.number("TRTYPE", 29, 1, "Transport Type");
  private static final Field COMMAND_SPECIFIC =
      TABLE.flags("COMMAND_SPECIFIC", 32, 8, "Command Specific Information");
  private static final Field TRANSPORT_SPECIFIC =
      TABLE.flags("TRANSPORT_SPECIFIC", 40, 2, "Transport Type Specific Information");

  /**
   * Wraps the first 64 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public ErrorLogEntry(MemorySegment segment) {
    super(segment, SIZE);
  }

  @Override
  List<Field> table() {
    return TABLE.fields();
  }

  /** Error Count: unique over the life of the controller, 0 an unused entry. */
  public long errorCount() {
    return int64(ERROR_COUNT);
  }

  public ErrorLogEntry errorCount(long value) {
    ERROR_COUNT.number(s, value);
    return this;
  }

  /** Submission Queue ID. */
  public int sqid() {
    return int32(SQID);
  }

  public ErrorLogEntry sqid(int value) {
    SQID.number(s, value);
    return this;
  }

  /** Command ID. */
  public int cid() {
    return int32(CID);
  }

  public ErrorLogEntry cid(int value) {
    CID.number(s, value);
    return this;
  }

  /** Status Field in bits 15:1, phase tag in bit 0. */
  public int statusField() {
    return int32(STATUS_FIELD);
  }

  public ErrorLogEntry statusField(int value) {
    STATUS_FIELD.number(s, value);
    return this;
  }

  /** Parameter Error Location: byte in bits 7:0, bit in bits 10:8; FFFFh not specific. */
  public int parameterErrorLocation() {
    return int32(PARAMETER_ERROR_LOCATION);
  }

  public ErrorLogEntry parameterErrorLocation(int value) {
    PARAMETER_ERROR_LOCATION.number(s, value);
    return this;
  }

  /** First LBA with the error. */
  public long lba() {
    return int64(LBA);
  }

  public ErrorLogEntry lba(long value) {
    LBA.number(s, value);
    return this;
  }

  /** Namespace. */
  public int nsid() {
    return int32(NSID);
  }

  public ErrorLogEntry nsid(int value) {
    NSID.number(s, Integer.toUnsignedLong(value));
    return this;
  }

  /** Vendor Specific Information Available: a log page, 0 none. */
  public int vendorSpecific() {
    return int32(VENDOR_SPECIFIC);
  }

  public ErrorLogEntry vendorSpecific(int value) {
    VENDOR_SPECIFIC.number(s, value);
    return this;
  }

  /** Transport Type. */
  public int trtype() {
    return int32(TRTYPE);
  }

  public ErrorLogEntry trtype(int value) {
    TRTYPE.number(s, value);
    return this;
  }

  /** Command Specific Information. */
  public long commandSpecific() {
    return int64(COMMAND_SPECIFIC);
  }

  public ErrorLogEntry commandSpecific(long value) {
    COMMAND_SPECIFIC.number(s, value);
    return this;
  }

  /** Transport Type Specific Information. */
  public int transportSpecific() {
    return int32(TRANSPORT_SPECIFIC);
  }

  public ErrorLogEntry transportSpecific(int value) {
    TRANSPORT_SPECIFIC.number(s, value);
    return this;
  }

  /** Returns entry {@code index} of a log page. */
  public static ErrorLogEntry at(MemorySegment page, int index) {
    return new ErrorLogEntry(page.asSlice((long) index * SIZE, SIZE));
  }

  /** The 15-bit status, see {@link Status}. */
  public int status() {
    return statusField() >>> 1;
  }

  /** Sets the 15-bit status; the phase tag stays. */
  public ErrorLogEntry status(int status) {
    return statusField((status << 1) | (statusField() & 1));
  }
}
