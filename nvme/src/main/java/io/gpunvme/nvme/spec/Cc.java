package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * CC, Controller Configuration (Base 2.0, 3.1.3.5).
 *
 * @param value the register as read
 */
public record Cc(int value) implements Structure {
  /** {@link #css()}: the NVM Command Set. */
  public static final int CSS_NVM = 0;

  /** {@link #css()}: all supported I/O command sets. */
  public static final int CSS_ALL = 6;

  /** {@link #css()}: admin commands only. */
  public static final int CSS_ADMIN_ONLY = 7;

  /** {@link #ams()}: round robin. */
  public static final int AMS_ROUND_ROBIN = 0;

  /** {@link #shn()}: no shutdown requested. */
  public static final int SHN_NONE = 0;

  /** {@link #shn()}: normal shutdown. */
  public static final int SHN_NORMAL = 1;

  /** {@link #shn()}: abrupt shutdown. */
  public static final int SHN_ABRUPT = 2;

  private static final BitField EN = new BitField("EN", 0, 1, "Enable");
  private static final BitField CSS =
      new BitField(
          "CSS", 4, 3, "I/O Command Set Selected: 0 NVM, 6 all supported sets, 7 admin only");
  private static final BitField MPS = new BitField("MPS", 7, 4, "Memory Page Size: 4 KiB << MPS");
  private static final BitField AMS =
      new BitField(
          "AMS", 11, 3, "Arbitration Mechanism Selected: 0 round robin, 1 weighted, 7 vendor");
  private static final BitField SHN =
      new BitField("SHN", 14, 2, "Shutdown Notification: 0 none, 1 normal, 2 abrupt");
  private static final BitField IOSQES =
      new BitField("IOSQES", 16, 4, "I/O Submission Queue Entry Size, power of two");
  private static final BitField IOCQES =
      new BitField("IOCQES", 20, 4, "I/O Completion Queue Entry Size, power of two");
  private static final BitField CRIME =
      new BitField("CRIME", 24, 1, "Controller Ready Independent of Media Enable");
  private static final BitField[] FIELDS = {EN, CSS, MPS, AMS, SHN, IOSQES, IOCQES, CRIME};

  /** Enable. */
  public boolean en() {
    return EN.get(value) != 0;
  }

  /** Returns a copy with EN replaced. */
  public Cc withEn(boolean en) {
    return new Cc(EN.with(value, en));
  }

  /** I/O Command Set Selected: 0 NVM, 6 all supported sets, 7 admin only. */
  public int css() {
    return CSS.get(value);
  }

  /** Returns a copy with CSS replaced. */
  public Cc withCss(int css) {
    return new Cc(CSS.with(value, css));
  }

  /** Memory Page Size: 4 KiB shifted left by MPS. */
  public int mps() {
    return MPS.get(value);
  }

  /** Returns a copy with MPS replaced. */
  public Cc withMps(int mps) {
    return new Cc(MPS.with(value, mps));
  }

  /** Arbitration Mechanism Selected: 0 round robin, 1 weighted, 7 vendor. */
  public int ams() {
    return AMS.get(value);
  }

  /** Returns a copy with AMS replaced. */
  public Cc withAms(int ams) {
    return new Cc(AMS.with(value, ams));
  }

  /** Shutdown Notification: 0 none, 1 normal, 2 abrupt. */
  public int shn() {
    return SHN.get(value);
  }

  /** Returns a copy with SHN replaced. */
  public Cc withShn(int shn) {
    return new Cc(SHN.with(value, shn));
  }

  /** I/O Submission Queue Entry Size, power of two. */
  public int iosqes() {
    return IOSQES.get(value);
  }

  /** Returns a copy with IOSQES replaced. */
  public Cc withIosqes(int iosqes) {
    return new Cc(IOSQES.with(value, iosqes));
  }

  /** I/O Completion Queue Entry Size, power of two. */
  public int iocqes() {
    return IOCQES.get(value);
  }

  /** Returns a copy with IOCQES replaced. */
  public Cc withIocqes(int iocqes) {
    return new Cc(IOCQES.with(value, iocqes));
  }

  /** Controller Ready Independent of Media Enable. */
  public boolean crime() {
    return CRIME.get(value) != 0;
  }

  /** Returns a copy with CRIME replaced. */
  public Cc withCrime(boolean crime) {
    return new Cc(CRIME.with(value, crime));
  }

  @Override
  public List<FieldValue> fields() {
    return BitField.decodeAll(value, FIELDS);
  }
}
