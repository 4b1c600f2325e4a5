package io.gpunvme.nvme.spec;

/**
 * Dword 0 of a completed Asynchronous Event Request (Base 2.0, 5.2.1). The same event stays masked
 * until the host reads {@link #logPage()}.
 *
 * @param dw0 the dword: type in bits 2:0, information in bits 15:8, log page in bits 23:16
 */
public record AsyncEvent(int dw0) {
  /** Type: the host or the controller did something wrong. */
  public static final int TYPE_ERROR = 0;

  /** Type: SMART / health status. */
  public static final int TYPE_SMART = 1;

  /** Type: a notice. */
  public static final int TYPE_NOTICE = 2;

  /** Type: specific to an I/O command set. */
  public static final int TYPE_IO_COMMAND_SET = 6;

  /** Type: vendor specific. */
  public static final int TYPE_VENDOR = 7;

  /** Error information: a write to the doorbell of a queue that does not exist. */
  public static final int ERROR_INVALID_DOORBELL_REGISTER = 0;

  /** Error information: an impossible doorbell value. */
  public static final int ERROR_INVALID_DOORBELL_VALUE = 1;

  /** Error information: a diagnostic failure. */
  public static final int ERROR_DIAGNOSTIC_FAILURE = 2;

  /** Error information: a persistent internal error. */
  public static final int ERROR_PERSISTENT_INTERNAL = 3;

  /** Error information: a transient internal error. */
  public static final int ERROR_TRANSIENT_INTERNAL = 4;

  /** Error information: the firmware image could not be loaded. */
  public static final int ERROR_FIRMWARE_IMAGE_LOAD = 5;

  /** SMART information: the NVM subsystem's reliability is compromised. */
  public static final int SMART_RELIABILITY = 0;

  /** SMART information: a temperature threshold was crossed. */
  public static final int SMART_TEMPERATURE = 1;

  /** SMART information: the available spare is below its threshold. */
  public static final int SMART_SPARE = 2;

  /** Notice: the Identify data of a namespace changed. */
  public static final int NOTICE_NAMESPACE_ATTRIBUTE_CHANGED = 0;

  /** Notice: firmware activation starts. */
  public static final int NOTICE_FIRMWARE_ACTIVATION = 1;

  /** Notice: the telemetry log changed. */
  public static final int NOTICE_TELEMETRY = 2;

  /** Notice: asymmetric namespace access changed. */
  public static final int NOTICE_ANA = 3;

  private static final String[][] NAMES = {
    {
      "Write to Invalid Doorbell Register",
      "Invalid Doorbell Write Value",
      "Diagnostic Failure",
      "Persistent Internal Error",
      "Transient Internal Error",
      "Firmware Image Load Error"
    },
    {"NVM subsystem Reliability", "Temperature Threshold", "Spare Below Threshold"},
    {
      "Namespace Attribute Changed",
      "Firmware Activation Starting",
      "Telemetry Log Changed",
      "Asymmetric Namespace Access Change",
      "Predictable Latency Event Aggregate Log Change",
      "LBA Status Information Alert",
      "Endurance Group Event Aggregate Log Page Change",
      "Normal NVM Subsystem Shutdown"
    }
  };

  /** Returns an event; each value is cut to its field. */
  public static AsyncEvent of(int type, int info, int logPage) {
    return new AsyncEvent((type & 7) | ((info & 0xFF) << 8) | ((logPage & 0xFF) << 16));
  }

  /** Asynchronous Event Type, 0..7. */
  public int type() {
    return dw0 & 7;
  }

  /** Asynchronous Event Information, 0..255, to be read together with {@link #type()}. */
  public int info() {
    return (dw0 >>> 8) & 0xFF;
  }

  /** The log page to read, see {@link LogId}; reading it lets the event happen again. */
  public int logPage() {
    return (dw0 >>> 16) & 0xFF;
  }

  /** Returns for example {@code Temperature Threshold (type 1h, information 01h, log page 02h)}. */
  public String describe() {
    return "%s (type %Xh, information %02Xh, log page %02Xh)"
        .formatted(name(), type(), info(), logPage());
  }

  private String name() {
    if (type() < NAMES.length && info() < NAMES[type()].length) {
      return NAMES[type()][info()];
    }
    return switch (type()) {
      case TYPE_ERROR -> "Error event";
      case TYPE_SMART -> "SMART / Health event";
      case TYPE_NOTICE -> "Notice";
      case TYPE_IO_COMMAND_SET -> "I/O Command specific event";
      case TYPE_VENDOR -> "Vendor specific event";
      default -> "Reserved event type";
    };
  }
}
