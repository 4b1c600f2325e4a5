package io.gpunvme.nvme.spec;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The dword of each feature: dword 0 of the completion of Get Features, and command dword 11 of Set
 * Features (Base 2.0, 5.27.1). Each of its fields is a constant here, after the feature that it
 * belongs to.
 */
public final class Features {
  /** Get Features CDW10 bits 10:8, SEL: the current value. */
  public static final int SEL_CURRENT = 0;

  /** SEL: the default value. */
  public static final int SEL_DEFAULT = 1;

  /** SEL: the saved value. */
  public static final int SEL_SAVED = 2;

  /** SEL: what can be done with the feature, see {@link #CHANGEABLE}. */
  public static final int SEL_SUPPORTED = 3;

  /** Set Features CDW10 bit 31, SV: keep the value over power cycles and resets. */
  public static final int SV = 1 << 31;

  private static final Map<Integer, BitFieldTable> TABLES = new HashMap<>();

  // Arbitration burst and the weights of weighted round robin (Base 2.0, 5.27.1.1).
  public static final BitField AB =
      field(FeatureId.ARBITRATION, "AB", 0, 3, "Arbitration Burst, power of two; 7 no limit");
  public static final BitField LPW =
      field(FeatureId.ARBITRATION, "LPW", 8, 8, "Low Priority Weight, zero-based");
  public static final BitField MPW =
      field(FeatureId.ARBITRATION, "MPW", 16, 8, "Medium Priority Weight, zero-based");
  public static final BitField HPW =
      field(FeatureId.ARBITRATION, "HPW", 24, 8, "High Priority Weight, zero-based");

  // The power state (Base 2.0, 5.27.1.2).
  public static final BitField PS = field(FeatureId.POWER_MANAGEMENT, "PS", 0, 5, "Power State");
  public static final BitField WH = field(FeatureId.POWER_MANAGEMENT, "WH", 5, 3, "Workload Hint");

  // A temperature that raises an event when crossed (Base 2.0, 5.27.1.3).
  public static final BitField TMPTH =
      field(FeatureId.TEMPERATURE_THRESHOLD, "TMPTH", 0, 16, "Temperature Threshold, kelvin");
  public static final BitField TMPSEL =
      field(
          FeatureId.TEMPERATURE_THRESHOLD,
          "TMPSEL",
          16,
          4,
          "Threshold Temperature Select: 0 composite, 1..8 a sensor, 15 all");
  public static final BitField THSEL =
      field(
          FeatureId.TEMPERATURE_THRESHOLD,
          "THSEL",
          20,
          2,
          "Threshold Type Select: 0 over, 1 under");

  // Error recovery of a namespace (NVM 1.0, 4.1.3.2).
  public static final BitField TLER =
      field(
          FeatureId.ERROR_RECOVERY,
          "TLER",
          0,
          16,
          "Time Limited Error Recovery, 100 ms units; 0 no limit");
  public static final BitField DULBE =
      field(
          FeatureId.ERROR_RECOVERY,
          "DULBE",
          16,
          1,
          "Deallocated or Unwritten Logical Block Error Enable");

  // The volatile write cache (Base 2.0, 5.27.1.4).
  public static final BitField WCE =
      field(FeatureId.VOLATILE_WRITE_CACHE, "WCE", 0, 1, "Volatile Write Cache Enable");

  // I/O queues: requested in CDW11, allocated in the completion (Base 2.0, 5.27.1.5).
  public static final BitField NSQ =
      field(
          FeatureId.NUMBER_OF_QUEUES, "NSQ", 0, 16, "Number of I/O Submission Queues, zero-based");
  public static final BitField NCQ =
      field(
          FeatureId.NUMBER_OF_QUEUES, "NCQ", 16, 16, "Number of I/O Completion Queues, zero-based");

  // Aggregation of interrupts (Base 2.0, 5.27.1.6).
  public static final BitField THR =
      field(
          FeatureId.INTERRUPT_COALESCING,
          "THR",
          0,
          8,
          "Aggregation Threshold, completions, zero-based");
  public static final BitField TIME =
      field(
          FeatureId.INTERRUPT_COALESCING,
          "TIME",
          8,
          8,
          "Aggregation Time, 100 us units; 0 no delay");

  // An interrupt vector (Base 2.0, 5.27.1.7).
  public static final BitField IV =
      field(FeatureId.INTERRUPT_VECTOR_CONFIG, "IV", 0, 16, "Interrupt Vector");
  public static final BitField CD =
      field(FeatureId.INTERRUPT_VECTOR_CONFIG, "CD", 16, 1, "Coalescing Disable");

  public static final BitField DN =
      field(
          FeatureId.WRITE_ATOMICITY,
          "DN",
          0,
          1,
          "Disable Normal: only AWUPF and NAWUPF are honoured");

  // Which asynchronous events are reported (Base 2.0, 5.27.1.8).
  public static final BitField SMART =
      field(
          FeatureId.ASYNC_EVENT_CONFIG,
          "SMART",
          0,
          8,
          "SMART / Health Critical Warnings, the bits of the log page");
  public static final BitField NAN =
      field(FeatureId.ASYNC_EVENT_CONFIG, "NAN", 8, 1, "Namespace Attribute Notices");
  public static final BitField FAN =
      field(FeatureId.ASYNC_EVENT_CONFIG, "FAN", 9, 1, "Firmware Activation Notices");
  public static final BitField TLN =
      field(FeatureId.ASYNC_EVENT_CONFIG, "TLN", 10, 1, "Telemetry Log Notices");
  public static final BitField ANACN =
      field(
          FeatureId.ASYNC_EVENT_CONFIG,
          "ANACN",
          11,
          1,
          "Asymmetric Namespace Access Change Notices");
  public static final BitField PLEALCN =
      field(
          FeatureId.ASYNC_EVENT_CONFIG,
          "PLEALCN",
          12,
          1,
          "Predictable Latency Event Aggregate Log Change Notices");
  public static final BitField LSIAN =
      field(FeatureId.ASYNC_EVENT_CONFIG, "LSIAN", 13, 1, "LBA Status Information Alert Notices");
  public static final BitField EGEALCN =
      field(
          FeatureId.ASYNC_EVENT_CONFIG,
          "EGEALCN",
          14,
          1,
          "Endurance Group Event Aggregate Log Change Notices");
  public static final BitField NNSSHDN =
      field(
          FeatureId.ASYNC_EVENT_CONFIG, "NNSSHDN", 15, 1, "Normal NVM Subsystem Shutdown Notices");

  public static final BitField APSTE =
      field(FeatureId.AUTONOMOUS_POWER, "APSTE", 0, 1, "Autonomous Power State Transition Enable");

  // Memory of the host lent to the controller, see HostMemoryBufferEntry (Base 2.0, 5.27.1.10).
  public static final BitField EHM =
      field(FeatureId.HOST_MEMORY_BUFFER, "EHM", 0, 1, "Enable Host Memory");
  public static final BitField MR =
      field(
          FeatureId.HOST_MEMORY_BUFFER,
          "MR",
          1,
          1,
          "Memory Return: the same memory as before, unchanged");

  public static final BitField KATO =
      field(FeatureId.KEEP_ALIVE_TIMER, "KATO", 0, 32, "Keep Alive Timeout in milliseconds; 0 off");

  // Temperatures at which the controller slows down (Base 2.0, 5.27.1.13).
  public static final BitField TMT2 =
      field(
          FeatureId.HOST_CONTROLLED_THERMAL,
          "TMT2",
          0,
          16,
          "Thermal Management Temperature 2: heavy throttling, kelvin");
  public static final BitField TMT1 =
      field(
          FeatureId.HOST_CONTROLLED_THERMAL,
          "TMT1",
          16,
          16,
          "Thermal Management Temperature 1: light throttling, kelvin");

  // What Get Features answers to SEL_SUPPORTED (Base 2.0, 5.15).
  public static final BitField SAVEABLE = new BitField("SAVEABLE", 0, 1, "the value can be saved");
  public static final BitField NAMESPACE_SPECIFIC =
      new BitField("NAMESPACE_SPECIFIC", 1, 1, "the value belongs to a namespace");
  public static final BitField CHANGEABLE =
      new BitField("CHANGEABLE", 2, 1, "Set Features can change the value");
  private static final List<BitField> CAPABILITIES =
      List.of(SAVEABLE, NAMESPACE_SPECIFIC, CHANGEABLE);

  private static final BitFieldTable NONE = new BitFieldTable();

  private Features() {}

  private static BitField field(int featureId, String name, int shift, int width, String meaning) {
    return TABLES
        .computeIfAbsent(featureId, id -> new BitFieldTable())
        .field(name, shift, width, meaning);
  }

  /**
   * Returns the fields of any feature's dword; empty if its value is not in a dword or not known
   * here.
   */
  public static List<FieldValue> decode(int featureId, int value) {
    return values(TABLES.getOrDefault(featureId, NONE).fields(), value);
  }

  /** Returns the fields of what Get Features answers to {@link #SEL_SUPPORTED}. */
  public static List<FieldValue> decodeCapabilities(int value) {
    return values(CAPABILITIES, value);
  }

  private static List<FieldValue> values(List<BitField> fields, int value) {
    return fields.stream().map(field -> FieldValue.of(field, value)).toList();
  }
}
