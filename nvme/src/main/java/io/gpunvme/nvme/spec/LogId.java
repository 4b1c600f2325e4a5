package io.gpunvme.nvme.spec;

/** Log page identifiers, CDW10 bits 7:0 of Get Log Page (Base 2.0, 5.16.1). */
public final class LogId {
  /** Supported Log Pages. */
  public static final int SUPPORTED = 0x00;

  /** Error Information. */
  public static final int ERROR = 0x01;

  /** SMART / Health Information. */
  public static final int SMART = 0x02;

  /** Firmware Slot Information. */
  public static final int FIRMWARE_SLOT = 0x03;

  /** Changed Namespace List. */
  public static final int CHANGED_NAMESPACES = 0x04;

  /** Commands Supported and Effects. */
  public static final int COMMANDS_EFFECTS = 0x05;

  /** Device Self-test. */
  public static final int DEVICE_SELF_TEST = 0x06;

  /** Telemetry Host-Initiated. */
  public static final int TELEMETRY_HOST = 0x07;

  /** Telemetry Controller-Initiated. */
  public static final int TELEMETRY_CONTROLLER = 0x08;

  /** Endurance Group Information. */
  public static final int ENDURANCE_GROUP = 0x09;

  /** Predictable Latency Per NVM Set. */
  public static final int PREDICTABLE_LATENCY = 0x0A;

  /** Predictable Latency Event Aggregate. */
  public static final int PREDICTABLE_LATENCY_EVENTS = 0x0B;

  /** Asymmetric Namespace Access. */
  public static final int ANA = 0x0C;

  /** Persistent Event Log. */
  public static final int PERSISTENT_EVENTS = 0x0D;

  /** LBA Status Information. */
  public static final int LBA_STATUS = 0x0E;

  /** Endurance Group Event Aggregate. */
  public static final int ENDURANCE_GROUP_EVENTS = 0x0F;

  /** Media Unit Status. */
  public static final int MEDIA_UNIT_STATUS = 0x10;

  /** Supported Capacity Configuration List. */
  public static final int CAPACITY_CONFIGURATIONS = 0x11;

  /** Feature Identifiers Supported and Effects. */
  public static final int FEATURE_EFFECTS = 0x12;

  /** NVMe-MI Commands Supported and Effects. */
  public static final int MI_COMMANDS_EFFECTS = 0x13;

  /** Command and Feature Lockdown. */
  public static final int LOCKDOWN = 0x14;

  /** Boot Partition. */
  public static final int BOOT_PARTITION = 0x15;

  /** Rotational Media Information. */
  public static final int ROTATIONAL_MEDIA = 0x16;

  /** Reservation Notification. */
  public static final int RESERVATION = 0x80;

  /** Sanitize Status. */
  public static final int SANITIZE = 0x81;

  private LogId() {}

  /** Returns the specification's name, or {@code "Log page ..h"} for a value not listed here. */
  public static String name(int value) {
    return switch (value) {
      case SUPPORTED -> "Supported Log Pages";
      case ERROR -> "Error Information";
      case SMART -> "SMART / Health Information";
      case FIRMWARE_SLOT -> "Firmware Slot Information";
      case CHANGED_NAMESPACES -> "Changed Namespace List";
      case COMMANDS_EFFECTS -> "Commands Supported and Effects";
      case DEVICE_SELF_TEST -> "Device Self-test";
      case TELEMETRY_HOST -> "Telemetry Host-Initiated";
      case TELEMETRY_CONTROLLER -> "Telemetry Controller-Initiated";
      case ENDURANCE_GROUP -> "Endurance Group Information";
      case PREDICTABLE_LATENCY -> "Predictable Latency Per NVM Set";
      case PREDICTABLE_LATENCY_EVENTS -> "Predictable Latency Event Aggregate";
      case ANA -> "Asymmetric Namespace Access";
      case PERSISTENT_EVENTS -> "Persistent Event Log";
      case LBA_STATUS -> "LBA Status Information";
      case ENDURANCE_GROUP_EVENTS -> "Endurance Group Event Aggregate";
      case MEDIA_UNIT_STATUS -> "Media Unit Status";
      case CAPACITY_CONFIGURATIONS -> "Supported Capacity Configuration List";
      case FEATURE_EFFECTS -> "Feature Identifiers Supported and Effects";
      case MI_COMMANDS_EFFECTS -> "NVMe-MI Commands Supported and Effects";
      case LOCKDOWN -> "Command and Feature Lockdown";
      case BOOT_PARTITION -> "Boot Partition";
      case ROTATIONAL_MEDIA -> "Rotational Media Information";
      case RESERVATION -> "Reservation Notification";
      case SANITIZE -> "Sanitize Status";
      default -> "Log page %02Xh".formatted(value);
    };
  }
}
