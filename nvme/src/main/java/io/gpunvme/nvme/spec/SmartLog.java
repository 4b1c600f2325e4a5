package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.math.BigInteger;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;

/**
 * SMART / Health Information log page: 512 bytes (Base 2.0, 5.16.1.3). Setters take the unit of the
 * getter and return this view.
 */
public final class SmartLog extends View {
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

  private static final Field CRITICAL_WARNING =
      TABLE.flags(
          "CRITICAL_WARNING",
          0,
          1,
          "Critical Warning: bit 0 spare, 1 temperature, 2 reliability, 3 read only, 4 backup, 5"
              + " persistent memory");
  private static final Field COMPOSITE_TEMPERATURE =
      TABLE.number("COMPOSITE_TEMPERATURE", 1, 2, "Composite Temperature, kelvin");
  private static final Field AVAILABLE_SPARE =
      TABLE.number("AVAILABLE_SPARE", 3, 1, "Available Spare, percent");
  private static final Field AVAILABLE_SPARE_THRESHOLD =
      TABLE.number("AVAILABLE_SPARE_THRESHOLD", 4, 1, "Available Spare Threshold, percent");
  private static final Field PERCENTAGE_USED =
      TABLE.number("PERCENTAGE_USED", 5, 1, "Percentage Used, may exceed 100");
  private static final Field ENDURANCE_GROUP_WARNING =
      TABLE.flags("ENDURANCE_GROUP_WARNING", 6, 1, "Endurance Group Critical Warning Summary");
  private static final Field DATA_UNITS_READ =
      TABLE.number(
          "DATA_UNITS_READ", 32, 16, "Data Units Read, 1000 units of 512 bytes each, rounded up");
  private static final Field DATA_UNITS_WRITTEN =
      TABLE.number(
          "DATA_UNITS_WRITTEN",
          48,
          16,
          "Data Units Written, 1000 units of 512 bytes each, rounded up");
  private static final Field HOST_READ_COMMANDS =
      TABLE.number("HOST_READ_COMMANDS", 64, 16, "Host Read Commands completed");
  private static final Field HOST_WRITE_COMMANDS =
      TABLE.number("HOST_WRITE_COMMANDS", 80, 16, "Host Write Commands completed");
  private static final Field CONTROLLER_BUSY_TIME =
      TABLE.number("CONTROLLER_BUSY_TIME", 96, 16, "Controller Busy Time, minutes");
  private static final Field POWER_CYCLES = TABLE.number("POWER_CYCLES", 112, 16, "Power Cycles");
  private static final Field POWER_ON_HOURS =
      TABLE.number("POWER_ON_HOURS", 128, 16, "Power On Hours");
  private static final Field UNSAFE_SHUTDOWNS =
      TABLE.number("UNSAFE_SHUTDOWNS", 144, 16, "Unsafe Shutdowns");
  private static final Field MEDIA_ERRORS =
      TABLE.number("MEDIA_ERRORS", 160, 16, "Media and Data Integrity Errors");
  private static final Field ERROR_LOG_ENTRIES =
      TABLE.number(
          "ERROR_LOG_ENTRIES",
          176,
          16,
          "Number of Error Information Log Entries over the life of the controller");
  private static final Field WARNING_TEMPERATURE_TIME =
      TABLE.number(
          "WARNING_TEMPERATURE_TIME", 192, 4, "Warning Composite Temperature Time, minutes");
  private static final Field CRITICAL_TEMPERATURE_TIME =
      TABLE.number(
          "CRITICAL_TEMPERATURE_TIME", 196, 4, "Critical Composite Temperature Time, minutes");

  private static final List<Field> TEMPERATURE_SENSOR =
      numbered(
          SENSORS, "TEMPERATURE_SENSOR", 200, 2, "Temperature Sensor, kelvin; 0 not implemented");
  private static final List<Field> THERMAL_TRANSITIONS =
      numbered(2, "THERMAL_TRANSITIONS", 216, 4, "entries into thermal management state");
  private static final List<Field> THERMAL_TIME =
      numbered(2, "THERMAL_TIME", 224, 4, "seconds in thermal management state");

  /**
   * Wraps the first 512 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public SmartLog(MemorySegment segment) {
    super(segment, SIZE);
  }

  @Override
  List<Field> table() {
    return TABLE.fields();
  }

  /**
   * Critical Warning: bit 0 spare, 1 temperature, 2 reliability, 3 read only, 4 backup, 5
   * persistent memory.
   */
  public int criticalWarning() {
    return int32(CRITICAL_WARNING);
  }

  public SmartLog criticalWarning(int value) {
    CRITICAL_WARNING.number(s, value);
    return this;
  }

  /** Composite Temperature, kelvin. */
  public int compositeTemperature() {
    return int32(COMPOSITE_TEMPERATURE);
  }

  public SmartLog compositeTemperature(int value) {
    COMPOSITE_TEMPERATURE.number(s, value);
    return this;
  }

  /** Available Spare, percent. */
  public int availableSpare() {
    return int32(AVAILABLE_SPARE);
  }

  public SmartLog availableSpare(int value) {
    AVAILABLE_SPARE.number(s, value);
    return this;
  }

  /** Available Spare Threshold, percent. */
  public int availableSpareThreshold() {
    return int32(AVAILABLE_SPARE_THRESHOLD);
  }

  public SmartLog availableSpareThreshold(int value) {
    AVAILABLE_SPARE_THRESHOLD.number(s, value);
    return this;
  }

  /** Percentage Used, may exceed 100. */
  public int percentageUsed() {
    return int32(PERCENTAGE_USED);
  }

  public SmartLog percentageUsed(int value) {
    PERCENTAGE_USED.number(s, value);
    return this;
  }

  /** Endurance Group Critical Warning Summary. */
  public int enduranceGroupWarning() {
    return int32(ENDURANCE_GROUP_WARNING);
  }

  public SmartLog enduranceGroupWarning(int value) {
    ENDURANCE_GROUP_WARNING.number(s, value);
    return this;
  }

  /** Data Units Read, 1000 units of 512 bytes each, rounded up. */
  public BigInteger dataUnitsRead() {
    return DATA_UNITS_READ.big(s);
  }

  public SmartLog dataUnitsRead(BigInteger value) {
    DATA_UNITS_READ.big(s, value);
    return this;
  }

  /** The low 64 bits of {@link #dataUnitsRead()}. */
  public long dataUnitsReadLow() {
    return int64(DATA_UNITS_READ);
  }

  /** Sets the low 64 bits, the high ones stay. */
  public SmartLog dataUnitsReadLow(long value) {
    DATA_UNITS_READ.number(s, value);
    return this;
  }

  /** Data Units Written, 1000 units of 512 bytes each, rounded up. */
  public BigInteger dataUnitsWritten() {
    return DATA_UNITS_WRITTEN.big(s);
  }

  public SmartLog dataUnitsWritten(BigInteger value) {
    DATA_UNITS_WRITTEN.big(s, value);
    return this;
  }

  /** The low 64 bits of {@link #dataUnitsWritten()}. */
  public long dataUnitsWrittenLow() {
    return int64(DATA_UNITS_WRITTEN);
  }

  /** Sets the low 64 bits, the high ones stay. */
  public SmartLog dataUnitsWrittenLow(long value) {
    DATA_UNITS_WRITTEN.number(s, value);
    return this;
  }

  /** Host Read Commands completed. */
  public BigInteger hostReadCommands() {
    return HOST_READ_COMMANDS.big(s);
  }

  public SmartLog hostReadCommands(BigInteger value) {
    HOST_READ_COMMANDS.big(s, value);
    return this;
  }

  /** The low 64 bits of {@link #hostReadCommands()}. */
  public long hostReadCommandsLow() {
    return int64(HOST_READ_COMMANDS);
  }

  /** Sets the low 64 bits, the high ones stay. */
  public SmartLog hostReadCommandsLow(long value) {
    HOST_READ_COMMANDS.number(s, value);
    return this;
  }

  /** Host Write Commands completed. */
  public BigInteger hostWriteCommands() {
    return HOST_WRITE_COMMANDS.big(s);
  }

  public SmartLog hostWriteCommands(BigInteger value) {
    HOST_WRITE_COMMANDS.big(s, value);
    return this;
  }

  /** The low 64 bits of {@link #hostWriteCommands()}. */
  public long hostWriteCommandsLow() {
    return int64(HOST_WRITE_COMMANDS);
  }

  /** Sets the low 64 bits, the high ones stay. */
  public SmartLog hostWriteCommandsLow(long value) {
    HOST_WRITE_COMMANDS.number(s, value);
    return this;
  }

  /** Controller Busy Time, minutes. */
  public BigInteger controllerBusyTime() {
    return CONTROLLER_BUSY_TIME.big(s);
  }

  public SmartLog controllerBusyTime(BigInteger value) {
    CONTROLLER_BUSY_TIME.big(s, value);
    return this;
  }

  /** The low 64 bits of {@link #controllerBusyTime()}. */
  public long controllerBusyTimeLow() {
    return int64(CONTROLLER_BUSY_TIME);
  }

  /** Sets the low 64 bits, the high ones stay. */
  public SmartLog controllerBusyTimeLow(long value) {
    CONTROLLER_BUSY_TIME.number(s, value);
    return this;
  }

  /** Power Cycles. */
  public BigInteger powerCycles() {
    return POWER_CYCLES.big(s);
  }

  public SmartLog powerCycles(BigInteger value) {
    POWER_CYCLES.big(s, value);
    return this;
  }

  /** The low 64 bits of {@link #powerCycles()}. */
  public long powerCyclesLow() {
    return int64(POWER_CYCLES);
  }

  /** Sets the low 64 bits, the high ones stay. */
  public SmartLog powerCyclesLow(long value) {
    POWER_CYCLES.number(s, value);
    return this;
  }

  /** Power On Hours. */
  public BigInteger powerOnHours() {
    return POWER_ON_HOURS.big(s);
  }

  public SmartLog powerOnHours(BigInteger value) {
    POWER_ON_HOURS.big(s, value);
    return this;
  }

  /** The low 64 bits of {@link #powerOnHours()}. */
  public long powerOnHoursLow() {
    return int64(POWER_ON_HOURS);
  }

  /** Sets the low 64 bits, the high ones stay. */
  public SmartLog powerOnHoursLow(long value) {
    POWER_ON_HOURS.number(s, value);
    return this;
  }

  /** Unsafe Shutdowns. */
  public BigInteger unsafeShutdowns() {
    return UNSAFE_SHUTDOWNS.big(s);
  }

  public SmartLog unsafeShutdowns(BigInteger value) {
    UNSAFE_SHUTDOWNS.big(s, value);
    return this;
  }

  /** The low 64 bits of {@link #unsafeShutdowns()}. */
  public long unsafeShutdownsLow() {
    return int64(UNSAFE_SHUTDOWNS);
  }

  /** Sets the low 64 bits, the high ones stay. */
  public SmartLog unsafeShutdownsLow(long value) {
    UNSAFE_SHUTDOWNS.number(s, value);
    return this;
  }

  /** Media and Data Integrity Errors. */
  public BigInteger mediaErrors() {
    return MEDIA_ERRORS.big(s);
  }

  public SmartLog mediaErrors(BigInteger value) {
    MEDIA_ERRORS.big(s, value);
    return this;
  }

  /** The low 64 bits of {@link #mediaErrors()}. */
  public long mediaErrorsLow() {
    return int64(MEDIA_ERRORS);
  }

  /** Sets the low 64 bits, the high ones stay. */
  public SmartLog mediaErrorsLow(long value) {
    MEDIA_ERRORS.number(s, value);
    return this;
  }

  /** Number of Error Information Log Entries over the life of the controller. */
  public BigInteger errorLogEntries() {
    return ERROR_LOG_ENTRIES.big(s);
  }

  public SmartLog errorLogEntries(BigInteger value) {
    ERROR_LOG_ENTRIES.big(s, value);
    return this;
  }

  /** The low 64 bits of {@link #errorLogEntries()}. */
  public long errorLogEntriesLow() {
    return int64(ERROR_LOG_ENTRIES);
  }

  /** Sets the low 64 bits, the high ones stay. */
  public SmartLog errorLogEntriesLow(long value) {
    ERROR_LOG_ENTRIES.number(s, value);
    return this;
  }

  /** Warning Composite Temperature Time, minutes. */
  public long warningTemperatureTime() {
    return int64(WARNING_TEMPERATURE_TIME);
  }

  public SmartLog warningTemperatureTime(long value) {
    WARNING_TEMPERATURE_TIME.number(s, value);
    return this;
  }

  /** Critical Composite Temperature Time, minutes. */
  public long criticalTemperatureTime() {
    return int64(CRITICAL_TEMPERATURE_TIME);
  }

  public SmartLog criticalTemperatureTime(long value) {
    CRITICAL_TEMPERATURE_TIME.number(s, value);
    return this;
  }

  /** Temperature sensor 1..8 in kelvin; 0 means not implemented. */
  public int temperatureSensor(int number) {
    return int32(TEMPERATURE_SENSOR.get(Objects.checkIndex(number - 1, SENSORS)));
  }

  public SmartLog temperatureSensor(int number, int kelvin) {
    TEMPERATURE_SENSOR.get(Objects.checkIndex(number - 1, SENSORS)).number(s, kelvin);
    return this;
  }

  /** How often the controller entered thermal management state 1 or 2. */
  public long thermalTransitions(int state) {
    return int64(THERMAL_TRANSITIONS.get(Objects.checkIndex(state - 1, 2)));
  }

  public SmartLog thermalTransitions(int state, long count) {
    THERMAL_TRANSITIONS.get(Objects.checkIndex(state - 1, 2)).number(s, count);
    return this;
  }

  /** Seconds spent in thermal management state 1 or 2. */
  public long thermalTime(int state) {
    return int64(THERMAL_TIME.get(Objects.checkIndex(state - 1, 2)));
  }

  public SmartLog thermalTime(int state, long seconds) {
    THERMAL_TIME.get(Objects.checkIndex(state - 1, 2)).number(s, seconds);
    return this;
  }

  private static List<Field> numbered(
      int count, String name, int offset, int length, String meaning) {
    return IntStream.range(0, count)
        .mapToObj(i -> TABLE.number(name + "_" + (i + 1), offset + i * length, length, meaning))
        .toList();
  }
}
