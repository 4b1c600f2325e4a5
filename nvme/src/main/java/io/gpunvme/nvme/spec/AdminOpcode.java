package io.gpunvme.nvme.spec;

/** Opcodes of the Admin Command Set (Base 2.0, 5). */
public final class AdminOpcode {
  /** Delete I/O Submission Queue. */
  public static final int DELETE_IO_SQ = 0x00;

  /** Create I/O Submission Queue. */
  public static final int CREATE_IO_SQ = 0x01;

  /** Get Log Page. */
  public static final int GET_LOG_PAGE = 0x02;

  /** Delete I/O Completion Queue. */
  public static final int DELETE_IO_CQ = 0x04;

  /** Create I/O Completion Queue. */
  public static final int CREATE_IO_CQ = 0x05;

  /** Identify. */
  public static final int IDENTIFY = 0x06;

  /** Abort. */
  public static final int ABORT = 0x08;

  /** Set Features. */
  public static final int SET_FEATURES = 0x09;

  /** Get Features. */
  public static final int GET_FEATURES = 0x0A;

  /** Asynchronous Event Request. */
  public static final int ASYNC_EVENT_REQUEST = 0x0C;

  /** Namespace Management. */
  public static final int NS_MANAGEMENT = 0x0D;

  /** Firmware Commit. */
  public static final int FIRMWARE_COMMIT = 0x10;

  /** Firmware Image Download. */
  public static final int FIRMWARE_DOWNLOAD = 0x11;

  /** Device Self-test. */
  public static final int DEVICE_SELF_TEST = 0x14;

  /** Namespace Attachment. */
  public static final int NS_ATTACHMENT = 0x15;

  /** Keep Alive. */
  public static final int KEEP_ALIVE = 0x18;

  /** Directive Send. */
  public static final int DIRECTIVE_SEND = 0x19;

  /** Directive Receive. */
  public static final int DIRECTIVE_RECEIVE = 0x1A;

  /** Virtualization Management. */
  public static final int VIRTUALIZATION_MANAGEMENT = 0x1C;

  /** NVMe-MI Send. */
  public static final int NVME_MI_SEND = 0x1D;

  /** NVMe-MI Receive. */
  public static final int NVME_MI_RECEIVE = 0x1E;

  /** Capacity Management. */
  public static final int CAPACITY_MANAGEMENT = 0x20;

  /** Lockdown. */
  public static final int LOCKDOWN = 0x24;

  /** Doorbell Buffer Config. */
  public static final int DOORBELL_BUFFER_CONFIG = 0x7C;

  /** Fabrics Commands. */
  public static final int FABRICS = 0x7F;

  /** Format NVM. */
  public static final int FORMAT_NVM = 0x80;

  /** Security Send. */
  public static final int SECURITY_SEND = 0x81;

  /** Security Receive. */
  public static final int SECURITY_RECEIVE = 0x82;

  /** Sanitize. */
  public static final int SANITIZE = 0x84;

  /** Get LBA Status. */
  public static final int GET_LBA_STATUS = 0x86;

  private AdminOpcode() {}

  /**
   * Returns the specification's name, or {@code "Admin opcode ..h"} for a value not listed here.
   */
  public static String name(int value) {
    return switch (value) {
      case DELETE_IO_SQ -> "Delete I/O Submission Queue";
      case CREATE_IO_SQ -> "Create I/O Submission Queue";
      case GET_LOG_PAGE -> "Get Log Page";
      case DELETE_IO_CQ -> "Delete I/O Completion Queue";
      case CREATE_IO_CQ -> "Create I/O Completion Queue";
      case IDENTIFY -> "Identify";
      case ABORT -> "Abort";
      case SET_FEATURES -> "Set Features";
      case GET_FEATURES -> "Get Features";
      case ASYNC_EVENT_REQUEST -> "Asynchronous Event Request";
      case NS_MANAGEMENT -> "Namespace Management";
      case FIRMWARE_COMMIT -> "Firmware Commit";
      case FIRMWARE_DOWNLOAD -> "Firmware Image Download";
      case DEVICE_SELF_TEST -> "Device Self-test";
      case NS_ATTACHMENT -> "Namespace Attachment";
      case KEEP_ALIVE -> "Keep Alive";
      case DIRECTIVE_SEND -> "Directive Send";
      case DIRECTIVE_RECEIVE -> "Directive Receive";
      case VIRTUALIZATION_MANAGEMENT -> "Virtualization Management";
      case NVME_MI_SEND -> "NVMe-MI Send";
      case NVME_MI_RECEIVE -> "NVMe-MI Receive";
      case CAPACITY_MANAGEMENT -> "Capacity Management";
      case LOCKDOWN -> "Lockdown";
      case DOORBELL_BUFFER_CONFIG -> "Doorbell Buffer Config";
      case FABRICS -> "Fabrics Commands";
      case FORMAT_NVM -> "Format NVM";
      case SECURITY_SEND -> "Security Send";
      case SECURITY_RECEIVE -> "Security Receive";
      case SANITIZE -> "Sanitize";
      case GET_LBA_STATUS -> "Get LBA Status";
      default -> "Admin opcode %02Xh".formatted(value);
    };
  }
}
