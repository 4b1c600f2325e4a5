package io.gpunvme.nvme.spec;

/**
 * Opcodes of the NVM Command Set and of the I/O commands common to all sets (NVM 1.0, 3; Base 2.0,
 * 7).
 */
public final class IoOpcode {
  /** Flush. */
  public static final int FLUSH = 0x00;

  /** Write. */
  public static final int WRITE = 0x01;

  /** Read. */
  public static final int READ = 0x02;

  /** Write Uncorrectable. */
  public static final int WRITE_UNCORRECTABLE = 0x04;

  /** Compare. */
  public static final int COMPARE = 0x05;

  /** Write Zeroes. */
  public static final int WRITE_ZEROES = 0x08;

  /** Dataset Management. */
  public static final int DATASET_MANAGEMENT = 0x09;

  /** Verify. */
  public static final int VERIFY = 0x0C;

  /** Reservation Register. */
  public static final int RESERVATION_REGISTER = 0x0D;

  /** Reservation Report. */
  public static final int RESERVATION_REPORT = 0x0E;

  /** Reservation Acquire. */
  public static final int RESERVATION_ACQUIRE = 0x11;

  /** Reservation Release. */
  public static final int RESERVATION_RELEASE = 0x15;

  /** Copy. */
  public static final int COPY = 0x19;

  private static final int TRANSFER = 3;
  private static final int TRANSFER_TO_CONTROLLER = 1;
  private static final int TRANSFER_TO_HOST = 2;

  private IoOpcode() {}

  /**
   * Whether commands with this opcode move data to the host: bits 1 to 0, Data Transfer Direction.
   */
  public static boolean toHost(int opcode) {
    return (opcode & TRANSFER) == TRANSFER_TO_HOST;
  }

  /** Whether commands with this opcode move data to the controller. */
  public static boolean toController(int opcode) {
    return (opcode & TRANSFER) == TRANSFER_TO_CONTROLLER;
  }

  /** Returns the specification's name, or {@code "I/O opcode ..h"} for a value not listed here. */
  public static String name(int value) {
    return switch (value) {
      case FLUSH -> "Flush";
      case WRITE -> "Write";
      case READ -> "Read";
      case WRITE_UNCORRECTABLE -> "Write Uncorrectable";
      case COMPARE -> "Compare";
      case WRITE_ZEROES -> "Write Zeroes";
      case DATASET_MANAGEMENT -> "Dataset Management";
      case VERIFY -> "Verify";
      case RESERVATION_REGISTER -> "Reservation Register";
      case RESERVATION_REPORT -> "Reservation Report";
      case RESERVATION_ACQUIRE -> "Reservation Acquire";
      case RESERVATION_RELEASE -> "Reservation Release";
      case COPY -> "Copy";
      default -> "I/O opcode %02Xh".formatted(value);
    };
  }
}
