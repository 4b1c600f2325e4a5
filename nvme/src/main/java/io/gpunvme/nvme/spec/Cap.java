package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * CAP, Controller Capabilities (Base 2.0, 3.1.3.1).
 *
 * @param value the register as read
 */
public record Cap(long value) implements Structure {
  /** Bit of {@link #css()}: the NVM Command Set. */
  public static final int CSS_NVM = 1;

  /** Bit of {@link #css()}: one or more I/O command sets, chosen by identifier. */
  public static final int CSS_IO_COMMAND_SETS = 1 << 6;

  /** Bit of {@link #css()}: no I/O command set at all. */
  public static final int CSS_ADMIN_ONLY = 1 << 7;

  /** Bit of {@link #crms()}: Controller Ready With Media. */
  public static final int CRMS_WITH_MEDIA = 1;

  /** Bit of {@link #crms()}: Controller Ready Independent of Media. */
  public static final int CRMS_INDEPENDENT_OF_MEDIA = 1 << 1;

  private static final BitField MQES =
      new BitField("MQES", 0, 16, "Maximum Queue Entries Supported, zero-based");
  private static final BitField CQR = new BitField("CQR", 16, 1, "Contiguous Queues Required");
  private static final BitField AMS =
      new BitField(
          "AMS",
          17,
          2,
          "Arbitration Mechanism Supported: bit 0 weighted round robin, bit 1 vendor");
  private static final BitField TO =
      new BitField("TO", 24, 8, "Timeout for CSTS.RDY to change, in units of 500 ms");
  private static final BitField DSTRD =
      new BitField("DSTRD", 32, 4, "Doorbell Stride: 4 << DSTRD bytes");
  private static final BitField NSSRS =
      new BitField("NSSRS", 36, 1, "NVM Subsystem Reset Supported");
  private static final BitField CSS =
      new BitField(
          "CSS",
          37,
          8,
          "Command Sets Supported: bit 0 NVM, bit 6 I/O command sets by identifier, bit 7 admin"
              + " only");
  private static final BitField BPS = new BitField("BPS", 45, 1, "Boot Partition Support");
  private static final BitField CPS =
      new BitField(
          "CPS",
          46,
          2,
          "Controller Power Scope: 0 not reported, 1 controller, 2 domain, 3 NVM subsystem");
  private static final BitField MPSMIN =
      new BitField("MPSMIN", 48, 4, "Memory Page Size Minimum: 4 KiB << MPSMIN");
  private static final BitField MPSMAX =
      new BitField("MPSMAX", 52, 4, "Memory Page Size Maximum: 4 KiB << MPSMAX");
  private static final BitField PMRS =
      new BitField("PMRS", 56, 1, "Persistent Memory Region Supported");
  private static final BitField CMBS =
      new BitField("CMBS", 57, 1, "Controller Memory Buffer Supported");
  private static final BitField NSSS =
      new BitField("NSSS", 58, 1, "NVM Subsystem Shutdown Supported");
  private static final BitField CRMS =
      new BitField(
          "CRMS",
          59,
          2,
          "Controller Ready Modes Supported: bit 0 with media, bit 1 independent of media");
  private static final BitField[] FIELDS = {
    MQES, CQR, AMS, TO, DSTRD, NSSRS, CSS, BPS, CPS, MPSMIN, MPSMAX, PMRS, CMBS, NSSS, CRMS
  };

  /** Maximum Queue Entries Supported, zero-based. */
  public int mqes() {
    return (int) MQES.get(value);
  }

  /** Contiguous Queues Required. */
  public boolean cqr() {
    return CQR.isSet(value);
  }

  /** Arbitration Mechanism Supported: bit 0 weighted round robin, bit 1 vendor. */
  public int ams() {
    return (int) AMS.get(value);
  }

  /** Timeout for CSTS.RDY to change, in units of 500 ms. */
  public int to() {
    return (int) TO.get(value);
  }

  /** Doorbell Stride: 4 bytes shifted left by DSTRD. */
  public int dstrd() {
    return (int) DSTRD.get(value);
  }

  /** NVM Subsystem Reset Supported. */
  public boolean nssrs() {
    return NSSRS.isSet(value);
  }

  /** Command Sets Supported: bit 0 NVM, bit 6 I/O command sets by identifier, bit 7 admin only. */
  public int css() {
    return (int) CSS.get(value);
  }

  /** Boot Partition Support. */
  public boolean bps() {
    return BPS.isSet(value);
  }

  /** Controller Power Scope: 0 not reported, 1 controller, 2 domain, 3 NVM subsystem. */
  public int cps() {
    return (int) CPS.get(value);
  }

  /** Memory Page Size Minimum: 4 KiB shifted left by MPSMIN. */
  public int mpsmin() {
    return (int) MPSMIN.get(value);
  }

  /** Memory Page Size Maximum: 4 KiB shifted left by MPSMAX. */
  public int mpsmax() {
    return (int) MPSMAX.get(value);
  }

  /** Persistent Memory Region Supported. */
  public boolean pmrs() {
    return PMRS.isSet(value);
  }

  /** Controller Memory Buffer Supported. */
  public boolean cmbs() {
    return CMBS.isSet(value);
  }

  /** NVM Subsystem Shutdown Supported. */
  public boolean nsss() {
    return NSSS.isSet(value);
  }

  /** Controller Ready Modes Supported: bit 0 with media, bit 1 independent of media. */
  public int crms() {
    return (int) CRMS.get(value);
  }

  /** Returns a builder with every field zero. */
  public static Builder builder() {
    return new Builder(0);
  }

  /** Returns a builder that starts from this value. */
  public Builder toBuilder() {
    return new Builder(value);
  }

  /**
   * Builds a CAP value; a setter throws {@link IllegalArgumentException} when the value does not
   * fit. Not thread-safe.
   */
  public static final class Builder {
    private long word;

    private Builder(long word) {
      this.word = word;
    }

    /** Maximum Queue Entries Supported, zero-based. */
    public Builder mqes(int mqes) {
      word = MQES.with(word, mqes);
      return this;
    }

    /** Contiguous Queues Required. */
    public Builder cqr(boolean cqr) {
      word = CQR.with(word, cqr);
      return this;
    }

    /** Arbitration Mechanism Supported: bit 0 weighted round robin, bit 1 vendor. */
    public Builder ams(int ams) {
      word = AMS.with(word, ams);
      return this;
    }

    /** Timeout for CSTS.RDY to change, in units of 500 ms. */
    public Builder to(int to) {
      word = TO.with(word, to);
      return this;
    }

    /** Doorbell Stride: 4 bytes shifted left by DSTRD. */
    public Builder dstrd(int dstrd) {
      word = DSTRD.with(word, dstrd);
      return this;
    }

    /** NVM Subsystem Reset Supported. */
    public Builder nssrs(boolean nssrs) {
      word = NSSRS.with(word, nssrs);
      return this;
    }

    /**
     * Command Sets Supported: bit 0 NVM, bit 6 I/O command sets by identifier, bit 7 admin only.
     */
    public Builder css(int css) {
      word = CSS.with(word, css);
      return this;
    }

    /** Boot Partition Support. */
    public Builder bps(boolean bps) {
      word = BPS.with(word, bps);
      return this;
    }

    /** Controller Power Scope: 0 not reported, 1 controller, 2 domain, 3 NVM subsystem. */
    public Builder cps(int cps) {
      word = CPS.with(word, cps);
      return this;
    }

    /** Memory Page Size Minimum: 4 KiB shifted left by MPSMIN. */
    public Builder mpsmin(int mpsmin) {
      word = MPSMIN.with(word, mpsmin);
      return this;
    }

    /** Memory Page Size Maximum: 4 KiB shifted left by MPSMAX. */
    public Builder mpsmax(int mpsmax) {
      word = MPSMAX.with(word, mpsmax);
      return this;
    }

    /** Persistent Memory Region Supported. */
    public Builder pmrs(boolean pmrs) {
      word = PMRS.with(word, pmrs);
      return this;
    }

    /** Controller Memory Buffer Supported. */
    public Builder cmbs(boolean cmbs) {
      word = CMBS.with(word, cmbs);
      return this;
    }

    /** NVM Subsystem Shutdown Supported. */
    public Builder nsss(boolean nsss) {
      word = NSSS.with(word, nsss);
      return this;
    }

    /** Controller Ready Modes Supported: bit 0 with media, bit 1 independent of media. */
    public Builder crms(int crms) {
      word = CRMS.with(word, crms);
      return this;
    }

    /** Returns the register. */
    public Cap build() {
      return new Cap(word);
    }
  }

  @Override
  public List<FieldValue> fields() {
    return BitField.decodeAll(value, FIELDS);
  }
}
