package io.gpunvme.nvme.spec;

/**
 * Feature identifiers, CDW10 bits 7:0 of Get Features and Set Features (Base 2.0, 5.27.1; NVM 1.0,
 * 4.1.3).
 */
public final class FeatureId {
  /** Arbitration. */
  public static final int ARBITRATION = 0x01;

  /** Power Management. */
  public static final int POWER_MANAGEMENT = 0x02;

  /** LBA Range Type. */
  public static final int LBA_RANGE_TYPE = 0x03;

  /** Temperature Threshold. */
  public static final int TEMPERATURE_THRESHOLD = 0x04;

  /** Error Recovery. */
  public static final int ERROR_RECOVERY = 0x05;

  /** Volatile Write Cache. */
  public static final int VOLATILE_WRITE_CACHE = 0x06;

  /** Number of Queues. */
  public static final int NUMBER_OF_QUEUES = 0x07;

  /** Interrupt Coalescing. */
  public static final int INTERRUPT_COALESCING = 0x08;

  /** Interrupt Vector Configuration. */
  public static final int INTERRUPT_VECTOR_CONFIG = 0x09;

  /** Write Atomicity Normal. */
  public static final int WRITE_ATOMICITY = 0x0A;

  /** Asynchronous Event Configuration. */
  public static final int ASYNC_EVENT_CONFIG = 0x0B;

  /** Autonomous Power State Transition. */
  public static final int AUTONOMOUS_POWER = 0x0C;

  /** Host Memory Buffer. */
  public static final int HOST_MEMORY_BUFFER = 0x0D;

  /** Timestamp. */
  public static final int TIMESTAMP = 0x0E;

  /** Keep Alive Timer. */
  public static final int KEEP_ALIVE_TIMER = 0x0F;

  /** Host Controlled Thermal Management. */
  public static final int HOST_CONTROLLED_THERMAL = 0x10;

  /** Non-Operational Power State Config. */
  public static final int NON_OPERATIONAL_POWER = 0x11;

  /** Read Recovery Level Config. */
  public static final int READ_RECOVERY_LEVEL = 0x12;

  /** Predictable Latency Mode Config. */
  public static final int PREDICTABLE_LATENCY_CONFIG = 0x13;

  /** Predictable Latency Mode Window. */
  public static final int PREDICTABLE_LATENCY_WINDOW = 0x14;

  /** LBA Status Information Report Interval. */
  public static final int LBA_STATUS_INTERVAL = 0x15;

  /** Host Behavior Support. */
  public static final int HOST_BEHAVIOR = 0x16;

  /** Sanitize Config. */
  public static final int SANITIZE_CONFIG = 0x17;

  /** Endurance Group Event Configuration. */
  public static final int ENDURANCE_GROUP_EVENTS = 0x18;

  /** I/O Command Set Profile. */
  public static final int IO_COMMAND_SET_PROFILE = 0x19;

  /** Spinup Control. */
  public static final int SPINUP_CONTROL = 0x1A;

  /** Software Progress Marker. */
  public static final int SOFTWARE_PROGRESS_MARKER = 0x80;

  /** Host Identifier. */
  public static final int HOST_IDENTIFIER = 0x81;

  /** Reservation Notification Mask. */
  public static final int RESERVATION_NOTIFICATION_MASK = 0x82;

  /** Reservation Persistence. */
  public static final int RESERVATION_PERSISTENCE = 0x83;

  /** Namespace Write Protection Config. */
  public static final int WRITE_PROTECTION = 0x84;

  private FeatureId() {}

  /** Returns the specification's name, or {@code "Feature ..h"} for a value not listed here. */
  public static String name(int value) {
    return switch (value) {
      case ARBITRATION -> "Arbitration";
      case POWER_MANAGEMENT -> "Power Management";
      case LBA_RANGE_TYPE -> "LBA Range Type";
      case TEMPERATURE_THRESHOLD -> "Temperature Threshold";
      case ERROR_RECOVERY -> "Error Recovery";
      case VOLATILE_WRITE_CACHE -> "Volatile Write Cache";
      case NUMBER_OF_QUEUES -> "Number of Queues";
      case INTERRUPT_COALESCING -> "Interrupt Coalescing";
      case INTERRUPT_VECTOR_CONFIG -> "Interrupt Vector Configuration";
      case WRITE_ATOMICITY -> "Write Atomicity Normal";
      case ASYNC_EVENT_CONFIG -> "Asynchronous Event Configuration";
      case AUTONOMOUS_POWER -> "Autonomous Power State Transition";
      case HOST_MEMORY_BUFFER -> "Host Memory Buffer";
      case TIMESTAMP -> "Timestamp";
      case KEEP_ALIVE_TIMER -> "Keep Alive Timer";
      case HOST_CONTROLLED_THERMAL -> "Host Controlled Thermal Management";
      case NON_OPERATIONAL_POWER -> "Non-Operational Power State Config";
      case READ_RECOVERY_LEVEL -> "Read Recovery Level Config";
      case PREDICTABLE_LATENCY_CONFIG -> "Predictable Latency Mode Config";
      case PREDICTABLE_LATENCY_WINDOW -> "Predictable Latency Mode Window";
      case LBA_STATUS_INTERVAL -> "LBA Status Information Report Interval";
      case HOST_BEHAVIOR -> "Host Behavior Support";
      case SANITIZE_CONFIG -> "Sanitize Config";
      case ENDURANCE_GROUP_EVENTS -> "Endurance Group Event Configuration";
      case IO_COMMAND_SET_PROFILE -> "I/O Command Set Profile";
      case SPINUP_CONTROL -> "Spinup Control";
      case SOFTWARE_PROGRESS_MARKER -> "Software Progress Marker";
      case HOST_IDENTIFIER -> "Host Identifier";
      case RESERVATION_NOTIFICATION_MASK -> "Reservation Notification Mask";
      case RESERVATION_PERSISTENCE -> "Reservation Persistence";
      case WRITE_PROTECTION -> "Namespace Write Protection Config";
      default -> "Feature %02Xh".formatted(value);
    };
  }
}
