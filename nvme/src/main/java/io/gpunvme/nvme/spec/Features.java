package io.gpunvme.nvme.spec;

import java.util.List;
import java.util.Map;

/**
 * The dword of each feature: dword 0 of the completion of Get Features, and command dword 11 of Set
 * Features (Base 2.0, 5.27.1). A record for each feature that has more to it than one value; {@link
 * #decode} knows the others too.
 */
public final class Features {
  /** Get Features CDW10 bits 10:8, SEL: the current value. */
  public static final int SEL_CURRENT = 0;

  /** SEL: the default value. */
  public static final int SEL_DEFAULT = 1;

  /** SEL: the saved value. */
  public static final int SEL_SAVED = 2;

  /** SEL: what can be done with the feature, see {@link Capabilities}. */
  public static final int SEL_SUPPORTED = 3;

  /** Set Features CDW10 bit 31, SV: keep the value over power cycles and resets. */
  public static final int SV = 1 << 31;

  private static final BitField DN =
      new BitField("DN", 0, 1, "Disable Normal: only AWUPF and NAWUPF are honoured");
  private static final BitField APSTE =
      new BitField("APSTE", 0, 1, "Autonomous Power State Transition Enable");
  private static final BitField KATO =
      new BitField("KATO", 0, 32, "Keep Alive Timeout in milliseconds; 0 off");

  private static final Map<Integer, BitField[]> TABLES =
      Map.ofEntries(
          Map.entry(
              FeatureId.ARBITRATION,
              new BitField[] {Arbitration.AB, Arbitration.LPW, Arbitration.MPW, Arbitration.HPW}),
          Map.entry(
              FeatureId.POWER_MANAGEMENT, new BitField[] {PowerManagement.PS, PowerManagement.WH}),
          Map.entry(
              FeatureId.TEMPERATURE_THRESHOLD,
              new BitField[] {
                TemperatureThreshold.TMPTH, TemperatureThreshold.TMPSEL, TemperatureThreshold.THSEL
              }),
          Map.entry(
              FeatureId.ERROR_RECOVERY, new BitField[] {ErrorRecovery.TLER, ErrorRecovery.DULBE}),
          Map.entry(FeatureId.VOLATILE_WRITE_CACHE, new BitField[] {VolatileWriteCache.WCE}),
          Map.entry(
              FeatureId.NUMBER_OF_QUEUES, new BitField[] {NumberOfQueues.NSQ, NumberOfQueues.NCQ}),
          Map.entry(
              FeatureId.INTERRUPT_COALESCING,
              new BitField[] {InterruptCoalescing.THR, InterruptCoalescing.TIME}),
          Map.entry(
              FeatureId.INTERRUPT_VECTOR_CONFIG,
              new BitField[] {InterruptVectorConfig.IV, InterruptVectorConfig.CD}),
          Map.entry(FeatureId.WRITE_ATOMICITY, new BitField[] {DN}),
          Map.entry(
              FeatureId.ASYNC_EVENT_CONFIG,
              new BitField[] {
                AsyncEventConfig.SMART,
                AsyncEventConfig.NAN,
                AsyncEventConfig.FAN,
                AsyncEventConfig.TLN,
                AsyncEventConfig.ANACN,
                AsyncEventConfig.PLEALCN,
                AsyncEventConfig.LSIAN,
                AsyncEventConfig.EGEALCN,
                AsyncEventConfig.NNSSHDN
              }),
          Map.entry(FeatureId.AUTONOMOUS_POWER, new BitField[] {APSTE}),
          Map.entry(
              FeatureId.HOST_MEMORY_BUFFER,
              new BitField[] {HostMemoryBuffer.EHM, HostMemoryBuffer.MR}),
          Map.entry(FeatureId.KEEP_ALIVE_TIMER, new BitField[] {KATO}),
          Map.entry(
              FeatureId.HOST_CONTROLLED_THERMAL,
              new BitField[] {HostControlledThermal.TMT2, HostControlledThermal.TMT1}));

  private Features() {}

  /**
   * Returns the fields of any feature's dword; empty if its value is not in a dword or not known
   * here.
   */
  public static List<FieldValue> decode(int featureId, int value) {
    return BitField.decodeAll(value, TABLES.getOrDefault(featureId, new BitField[0]));
  }

  /**
   * Arbitration burst and the weights of weighted round robin (Base 2.0, 5.27.1.1).
   *
   * @param value the dword
   */
  public record Arbitration(int value) {
    private static final BitField AB =
        new BitField("AB", 0, 3, "Arbitration Burst, power of two; 7 no limit");
    private static final BitField LPW =
        new BitField("LPW", 8, 8, "Low Priority Weight, zero-based");
    private static final BitField MPW =
        new BitField("MPW", 16, 8, "Medium Priority Weight, zero-based");
    private static final BitField HPW =
        new BitField("HPW", 24, 8, "High Priority Weight, zero-based");

    /** Arbitration Burst, power of two; 7 no limit. */
    public int ab() {
      return AB.get(value);
    }

    /** Low Priority Weight, zero-based. */
    public int lpw() {
      return LPW.get(value);
    }

    /** Medium Priority Weight, zero-based. */
    public int mpw() {
      return MPW.get(value);
    }

    /** High Priority Weight, zero-based. */
    public int hpw() {
      return HPW.get(value);
    }

    /** Returns the dword; {@link IllegalArgumentException} if a value does not fit its field. */
    public static Arbitration of(int ab, int lpw, int mpw, int hpw) {
      return new Arbitration(AB.with(LPW.with(MPW.with(HPW.with(0, hpw), mpw), lpw), ab));
    }
  }

  /**
   * The power state (Base 2.0, 5.27.1.2).
   *
   * @param value the dword
   */
  public record PowerManagement(int value) {
    private static final BitField PS = new BitField("PS", 0, 5, "Power State");
    private static final BitField WH = new BitField("WH", 5, 3, "Workload Hint");

    /** Power State. */
    public int ps() {
      return PS.get(value);
    }

    /** Workload Hint. */
    public int wh() {
      return WH.get(value);
    }

    /** Returns the dword; {@link IllegalArgumentException} if a value does not fit its field. */
    public static PowerManagement of(int ps, int wh) {
      return new PowerManagement(PS.with(WH.with(0, wh), ps));
    }
  }

  /**
   * A temperature that raises an event when crossed (Base 2.0, 5.27.1.3).
   *
   * @param value the dword
   */
  public record TemperatureThreshold(int value) {
    private static final BitField TMPTH =
        new BitField("TMPTH", 0, 16, "Temperature Threshold, kelvin");
    private static final BitField TMPSEL =
        new BitField(
            "TMPSEL", 16, 4, "Threshold Temperature Select: 0 composite, 1..8 a sensor, 15 all");
    private static final BitField THSEL =
        new BitField("THSEL", 20, 2, "Threshold Type Select: 0 over, 1 under");

    /** Temperature Threshold, kelvin. */
    public int tmpth() {
      return TMPTH.get(value);
    }

    /** Threshold Temperature Select: 0 composite, 1..8 a sensor, 15 all. */
    public int tmpsel() {
      return TMPSEL.get(value);
    }

    /** Threshold Type Select: 0 over, 1 under. */
    public int thsel() {
      return THSEL.get(value);
    }

    /** Returns the dword; {@link IllegalArgumentException} if a value does not fit its field. */
    public static TemperatureThreshold of(int tmpth, int tmpsel, int thsel) {
      return new TemperatureThreshold(TMPTH.with(TMPSEL.with(THSEL.with(0, thsel), tmpsel), tmpth));
    }
  }

  /**
   * Error recovery of a namespace (NVM 1.0, 4.1.3.2).
   *
   * @param value the dword
   */
  public record ErrorRecovery(int value) {
    private static final BitField TLER =
        new BitField("TLER", 0, 16, "Time Limited Error Recovery, 100 ms units; 0 no limit");
    private static final BitField DULBE =
        new BitField("DULBE", 16, 1, "Deallocated or Unwritten Logical Block Error Enable");

    /** Time Limited Error Recovery, 100 ms units; 0 no limit. */
    public int tler() {
      return TLER.get(value);
    }

    /** Deallocated or Unwritten Logical Block Error Enable. */
    public boolean dulbe() {
      return DULBE.isSet(value);
    }

    /** Returns the dword; {@link IllegalArgumentException} if a value does not fit its field. */
    public static ErrorRecovery of(int tler, boolean dulbe) {
      return new ErrorRecovery(TLER.with(DULBE.with(0, dulbe), tler));
    }
  }

  /**
   * The volatile write cache (Base 2.0, 5.27.1.4).
   *
   * @param value the dword
   */
  public record VolatileWriteCache(int value) {
    private static final BitField WCE = new BitField("WCE", 0, 1, "Volatile Write Cache Enable");

    /** Volatile Write Cache Enable. */
    public boolean wce() {
      return WCE.isSet(value);
    }

    /** Returns the dword; {@link IllegalArgumentException} if a value does not fit its field. */
    public static VolatileWriteCache of(boolean wce) {
      return new VolatileWriteCache(WCE.with(0, wce));
    }
  }

  /**
   * I/O queues: requested in CDW11, allocated in the completion (Base 2.0, 5.27.1.5).
   *
   * @param value the dword
   */
  public record NumberOfQueues(int value) {
    private static final BitField NSQ =
        new BitField("NSQ", 0, 16, "Number of I/O Submission Queues, zero-based");
    private static final BitField NCQ =
        new BitField("NCQ", 16, 16, "Number of I/O Completion Queues, zero-based");

    /** Number of I/O Submission Queues, zero-based. */
    public int nsq() {
      return NSQ.get(value);
    }

    /** Number of I/O Completion Queues, zero-based. */
    public int ncq() {
      return NCQ.get(value);
    }

    /** Returns the dword; {@link IllegalArgumentException} if a value does not fit its field. */
    public static NumberOfQueues of(int nsq, int ncq) {
      return new NumberOfQueues(NSQ.with(NCQ.with(0, ncq), nsq));
    }
  }

  /**
   * Aggregation of interrupts (Base 2.0, 5.27.1.6).
   *
   * @param value the dword
   */
  public record InterruptCoalescing(int value) {
    private static final BitField THR =
        new BitField("THR", 0, 8, "Aggregation Threshold, completions, zero-based");
    private static final BitField TIME =
        new BitField("TIME", 8, 8, "Aggregation Time, 100 us units; 0 no delay");

    /** Aggregation Threshold, completions, zero-based. */
    public int thr() {
      return THR.get(value);
    }

    /** Aggregation Time, 100 us units; 0 no delay. */
    public int time() {
      return TIME.get(value);
    }

    /** Returns the dword; {@link IllegalArgumentException} if a value does not fit its field. */
    public static InterruptCoalescing of(int thr, int time) {
      return new InterruptCoalescing(THR.with(TIME.with(0, time), thr));
    }
  }

  /**
   * An interrupt vector (Base 2.0, 5.27.1.7).
   *
   * @param value the dword
   */
  public record InterruptVectorConfig(int value) {
    private static final BitField IV = new BitField("IV", 0, 16, "Interrupt Vector");
    private static final BitField CD = new BitField("CD", 16, 1, "Coalescing Disable");

    /** Interrupt Vector. */
    public int iv() {
      return IV.get(value);
    }

    /** Coalescing Disable. */
    public boolean cd() {
      return CD.isSet(value);
    }

    /** Returns the dword; {@link IllegalArgumentException} if a value does not fit its field. */
    public static InterruptVectorConfig of(int iv, boolean cd) {
      return new InterruptVectorConfig(IV.with(CD.with(0, cd), iv));
    }
  }

  /**
   * Which asynchronous events are reported (Base 2.0, 5.27.1.8).
   *
   * @param value the dword
   */
  public record AsyncEventConfig(int value) {
    private static final BitField SMART =
        new BitField("SMART", 0, 8, "SMART / Health Critical Warnings, the bits of the log page");
    private static final BitField NAN = new BitField("NAN", 8, 1, "Namespace Attribute Notices");
    private static final BitField FAN = new BitField("FAN", 9, 1, "Firmware Activation Notices");
    private static final BitField TLN = new BitField("TLN", 10, 1, "Telemetry Log Notices");
    private static final BitField ANACN =
        new BitField("ANACN", 11, 1, "Asymmetric Namespace Access Change Notices");
    private static final BitField PLEALCN =
        new BitField("PLEALCN", 12, 1, "Predictable Latency Event Aggregate Log Change Notices");
    private static final BitField LSIAN =
        new BitField("LSIAN", 13, 1, "LBA Status Information Alert Notices");
    private static final BitField EGEALCN =
        new BitField("EGEALCN", 14, 1, "Endurance Group Event Aggregate Log Change Notices");
    private static final BitField NNSSHDN =
        new BitField("NNSSHDN", 15, 1, "Normal NVM Subsystem Shutdown Notices");

    /** SMART / Health Critical Warnings, the bits of the log page. */
    public int smart() {
      return SMART.get(value);
    }

    /** Namespace Attribute Notices. */
    public boolean nan() {
      return NAN.isSet(value);
    }

    /** Firmware Activation Notices. */
    public boolean fan() {
      return FAN.isSet(value);
    }

    /** Telemetry Log Notices. */
    public boolean tln() {
      return TLN.isSet(value);
    }

    /** Asymmetric Namespace Access Change Notices. */
    public boolean anacn() {
      return ANACN.isSet(value);
    }

    /** Predictable Latency Event Aggregate Log Change Notices. */
    public boolean plealcn() {
      return PLEALCN.isSet(value);
    }

    /** LBA Status Information Alert Notices. */
    public boolean lsian() {
      return LSIAN.isSet(value);
    }

    /** Endurance Group Event Aggregate Log Change Notices. */
    public boolean egealcn() {
      return EGEALCN.isSet(value);
    }

    /** Normal NVM Subsystem Shutdown Notices. */
    public boolean nnsshdn() {
      return NNSSHDN.isSet(value);
    }

    /** Returns the dword; {@link IllegalArgumentException} if a value does not fit its field. */
    public static AsyncEventConfig of(
        int smart,
        boolean nan,
        boolean fan,
        boolean tln,
        boolean anacn,
        boolean plealcn,
        boolean lsian,
        boolean egealcn,
        boolean nnsshdn) {
      int word = 0;
      word = SMART.with(word, smart);
      word = NAN.with(word, nan);
      word = FAN.with(word, fan);
      word = TLN.with(word, tln);
      word = ANACN.with(word, anacn);
      word = PLEALCN.with(word, plealcn);
      word = LSIAN.with(word, lsian);
      word = EGEALCN.with(word, egealcn);
      word = NNSSHDN.with(word, nnsshdn);
      return new AsyncEventConfig(word);
    }
  }

  /**
   * Memory of the host lent to the controller, see {@link HostMemoryBufferEntry} (Base 2.0,
   * 5.27.1.10).
   *
   * @param value the dword
   */
  public record HostMemoryBuffer(int value) {
    private static final BitField EHM = new BitField("EHM", 0, 1, "Enable Host Memory");
    private static final BitField MR =
        new BitField("MR", 1, 1, "Memory Return: the same memory as before, unchanged");

    /** Enable Host Memory. */
    public boolean ehm() {
      return EHM.isSet(value);
    }

    /** Memory Return: the same memory as before, unchanged. */
    public boolean mr() {
      return MR.isSet(value);
    }

    /** Returns the dword; {@link IllegalArgumentException} if a value does not fit its field. */
    public static HostMemoryBuffer of(boolean ehm, boolean mr) {
      return new HostMemoryBuffer(EHM.with(MR.with(0, mr), ehm));
    }
  }

  /**
   * Temperatures at which the controller slows down (Base 2.0, 5.27.1.13).
   *
   * @param value the dword
   */
  public record HostControlledThermal(int value) {
    private static final BitField TMT2 =
        new BitField("TMT2", 0, 16, "Thermal Management Temperature 2: heavy throttling, kelvin");
    private static final BitField TMT1 =
        new BitField("TMT1", 16, 16, "Thermal Management Temperature 1: light throttling, kelvin");

    /** Thermal Management Temperature 2: heavy throttling, kelvin. */
    public int tmt2() {
      return TMT2.get(value);
    }

    /** Thermal Management Temperature 1: light throttling, kelvin. */
    public int tmt1() {
      return TMT1.get(value);
    }

    /** Returns the dword; {@link IllegalArgumentException} if a value does not fit its field. */
    public static HostControlledThermal of(int tmt2, int tmt1) {
      return new HostControlledThermal(TMT2.with(TMT1.with(0, tmt1), tmt2));
    }
  }

  /**
   * What Get Features answers to {@link #SEL_SUPPORTED} (Base 2.0, 5.15).
   *
   * @param value the dword
   */
  public record Capabilities(int value) {
    private static final BitField SAVEABLE =
        new BitField("SAVEABLE", 0, 1, "the value can be saved");
    private static final BitField NAMESPACE_SPECIFIC =
        new BitField("NAMESPACE_SPECIFIC", 1, 1, "the value belongs to a namespace");
    private static final BitField CHANGEABLE =
        new BitField("CHANGEABLE", 2, 1, "Set Features can change the value");

    /** The value can be saved. */
    public boolean saveable() {
      return SAVEABLE.isSet(value);
    }

    /** The value belongs to a namespace. */
    public boolean namespaceSpecific() {
      return NAMESPACE_SPECIFIC.isSet(value);
    }

    /** Set Features can change the value. */
    public boolean changeable() {
      return CHANGEABLE.isSet(value);
    }

    /** Returns the dword. */
    public static Capabilities of(boolean saveable, boolean namespaceSpecific, boolean changeable) {
      return new Capabilities(
          SAVEABLE.with(
              NAMESPACE_SPECIFIC.with(CHANGEABLE.with(0, changeable), namespaceSpecific),
              saveable));
    }
  }
}
