package io.gpunvme.nvme.spec;

/**
 * The 15-bit Status Field of a completion (Base 2.0, 3.3.3.2.1) as an {@code int}: SC bits 7:0, SCT
 * 10:8, CRD 12:11, M 13, DNR 14. 0 is success.
 */
public final class Status {
  /** Do Not Retry: the same command will fail again. */
  public static final int DNR = 1 << 14;

  /** More: the Error Information log holds details. */
  public static final int MORE = 1 << 13;

  /** SCT of generic command status. */
  public static final int SCT_GENERIC = 0;

  /** SCT of command specific status. */
  public static final int SCT_COMMAND_SPECIFIC = 1;

  /** SCT of media and data integrity errors. */
  public static final int SCT_MEDIA = 2;

  /** SCT of path related status; the driver's own statuses are of this type. */
  public static final int SCT_PATH = 3;

  /** SCT of vendor specific status. */
  public static final int SCT_VENDOR = 7;

  /** SC and SCT: what names an error. */
  static final int CODE_MASK = 0x7FF;

  private Status() {}

  /** Status Code, 0..255. */
  public static int sc(int status) {
    return status & 0xFF;
  }

  /** Status Code Type, 0..7. */
  public static int sct(int status) {
    return (status >>> 8) & 7;
  }

  /**
   * Command Retry Delay: 0 none, 1..3 selects {@link IdentifyController#CRDT1} and its siblings.
   */
  public static int crd(int status) {
    return (status >>> 11) & 3;
  }

  /** Do Not Retry. */
  public static boolean dnr(int status) {
    return (status & DNR) != 0;
  }

  /** More information is in the Error Information log. */
  public static boolean more(int status) {
    return (status & MORE) != 0;
  }

  /** Whether SC and SCT say success. */
  public static boolean ok(int status) {
    return (status & CODE_MASK) == 0;
  }

  /** Returns the status field with the given SCT (0..7) and SC (0..255), other bits clear. */
  public static int of(int sct, int sc) {
    return ((sct & 7) << 8) | (sc & 0xFF);
  }

  /** Returns for example {@code LBA Out of Range (SCT 0h, SC 80h, DNR)}. */
  public static String describe(int status) {
    StatusCode code = StatusCode.of(status);
    StringBuilder text = new StringBuilder(code != null ? code.text() : typeName(sct(status)));
    text.append(" (SCT %Xh, SC %02Xh".formatted(sct(status), sc(status)));
    if (crd(status) != 0) {
      text.append(", CRD ").append(crd(status));
    }
    if (more(status)) {
      text.append(", M");
    }
    if (dnr(status)) {
      text.append(", DNR");
    }
    return text.append(')').toString();
  }

  private static String typeName(int sct) {
    return switch (sct) {
      case SCT_GENERIC -> "Unknown generic status";
      case SCT_COMMAND_SPECIFIC -> "Unknown command specific status";
      case SCT_MEDIA -> "Unknown media error";
      case SCT_PATH -> "Unknown path status";
      case SCT_VENDOR -> "Vendor specific status";
      default -> "Reserved status type";
    };
  }
}
