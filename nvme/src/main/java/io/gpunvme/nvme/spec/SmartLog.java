package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.stream.IntStream;

/** SMART / Health Information log page: 512 bytes (Base 2.0, 5.16.1.3). */
public final class SmartLog extends View<SmartLog> {
  /** Bytes of the structure. */
  public static final int SIZE = 512;

  /** Temperature sensors in the page. */
  public static final int SENSORS = 8;

  /** Critical Warning bit 0: the available spare is below its threshold. */
  public static final int WARNING_SPARE = 1;

  /** Critical Warning bit 1: a temperature is beyond a threshold. */
  public static final int WARNING_TEMPERATURE = 1 << 1;

  /** Critical Warning bit 2: the NVM subsystem's reliability is degraded. */
  public static final int WARNING_RELIABILITY = 1 << 2;

  /** Critical Warning bit 3: all media are read only. */
  public static final int WARNING_READ_ONLY = 1 << 3;

  /** Critical Warning bit 4: the volatile memory backup device failed. */
  public static final int WARNING_BACKUP = 1 << 4;

  /** Critical Warning bit 5: the persistent memory region is unreliable or read only. */
  public static final int WARNING_PERSISTENT_MEMORY = 1 << 5;

  private static final FieldTable TABLE = new FieldTable();

  public static final Field CRITICAL_WARNING =
      TABLE.flags(
          "CRITICAL_WARNING",
          0,
          1,
          "Critical Warning: bit 0 spare, 1 temperature, 2 reliability, 3 read only, 4 backup, 5"
              + " persistent memory");
  public static final Field COMPOSITE_TEMPERATURE =
      TABLE.number("COMPOSITE_TEMPERATURE", 1, 2, "Composite Temperature, kelvin");
  public static final Field AVAILABLE_SPARE =
      TABLE.number("AVAILABLE_SPARE", 3, 1, "Available Spare, percent");
  public static final Field AVAILABLE_SPARE_THRESHOLD =
      TABLE.number("AVAILABLE_SPARE_THRESHOLD", 4, 1, "Available Spare Threshold, percent");
  public static final Field PERCENTAGE_USED =
      TABLE.number("PERCENTAGE_USED", 5, 1, "Percentage Used, may exceed 100");
  public static final Field ENDURANCE_GROUP_WARNING =
      TABLE.flags("ENDURANCE_GROUP_WARNING", 6, 1, "Endurance Group Critical Warning Summary");
  public static final Field DATA_UNITS_READ =
      TABLE.number(
          "DATA_UNITS_READ", 32, 16, "Data Units Read, 1000 units of 512 bytes each, rounded up");
  public static final Field DATA_UNITS_WRITTEN =
      TABLE.number(
          "DATA_UNITS_WRITTEN",
          48,
          16,
          "Data Units Written, 1000 units of 512 bytes each, rounded up");
  public static final Field HOST_READ_COMMANDS =
      TABLE.number("HOST_READ_COMMANDS", 64, 16, "Host Read Commands completed");
  public static final Field HOST_WRITE_COMMANDS =
      TABLE.number("HOST_WRITE_COMMANDS", 80, 16, "Host Write Commands completed");
  public static final Field CONTROLLER_BUSY_TIME =
      TABLE.number("CONTROLLER_BUSY_TIME", 96, 16, "Controller Busy Time, minutes");
  public static final Field POWER_CYCLES = TABLE.number("POWER_CYCLES", 112, 16, "Power Cycles");
  public static final Field POWER_ON_HOURS =
      TABLE.number("POWER_ON_HOURS", 128, 16, "Power On Hours");
  public static final Field UNSAFE_SHUTDOWNS =
      TABLE.number("UNSAFE_SHUTDOWNS", 144, 16, "Unsafe Shutdowns");
  public static final Field MEDIA_ERRORS =
      TABLE.number("MEDIA_ERRORS", 160, 16, "Media and Data Integrity Errors");
  public static final Field ERROR_LOG_ENTRIES =
      TABLE.number(
          "ERROR_LOG_ENTRIES",
          176,
          16,
          "Number of Error Information Log Entries over the life of the controller");
  public static final Field WARNING_TEMPERATURE_TIME =
      TABLE.number(
          "WARNING_TEMPERATURE_TIME", 192, 4, "Warning Composite Temperature Time, minutes");
  public static final Field CRITICAL_TEMPERATURE_TIME =
      TABLE.number(
          "CRITICAL_TEMPERATURE_TIME", 196, 4, "Critical Composite Temperature Time, minutes");
  public static final List<Field> TEMPERATURE_SENSOR =
      numbered(
          SENSORS, "TEMPERATURE_SENSOR", 200, 2, "Temperature Sensor, kelvin; 0 not implemented");
  public static final List<Field> THERMAL_TRANSITIONS =
      numbered(2, "THERMAL_TRANSITIONS", 216, 4, "entries into thermal management state");
  public static final List<Field> THERMAL_TIME =
      numbered(2, "THERMAL_TIME", 224, 4, "seconds in thermal management state");

  /**
   * Wraps the first 512 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public SmartLog(MemorySegment segment) {
    super(segment, SIZE, TABLE);
  }

  private static List<Field> numbered(
      int count, String name, int offset, int length, String meaning) {
    return IntStream.range(0, count)
        .mapToObj(i -> TABLE.number(name + "_" + (i + 1), offset + i * length, length, meaning))
        .toList();
  }
}
