package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.math.BigInteger;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;

/**
 * Identify Controller data structure: 4096 bytes (Base 2.0, 5.17.2.1). Getters and setters are
 * named after the specification's abbreviations; setters take the same unit and return this view.
 * Fields of message-based transports are left out.
 *
 * <p>32-bit quantities are unsigned in a {@code long}, 32-bit flags are an {@code int}. Text is
 * padded with spaces when written and stripped when read; bytes that are not printable ASCII read
 * as {@code ?}.
 */
public final class IdentifyController extends ControllerAdminAttributes {
  /** Bytes of the structure. */
  public static final int SIZE = 4096;

  /** Power state descriptors in the structure. */
  public static final int POWER_STATES = 32;

  /** OAES bit 8: Namespace Attribute notices. */
  public static final int OAES_NAMESPACE_ATTRIBUTES = 1 << 8;

  /** OAES bit 9: Firmware Activation notices. */
  public static final int OAES_FIRMWARE_ACTIVATION = 1 << 9;

  /** CTRATT bit 0: 128-bit Host Identifier. */
  public static final int CTRATT_HOST_ID_128 = 1;

  /** OACS bit 0: Security Send and Receive. */
  public static final int OACS_SECURITY = 1;

  /** OACS bit 1: Format NVM. */
  public static final int OACS_FORMAT = 1 << 1;

  /** OACS bit 2: Firmware Commit and Image Download. */
  public static final int OACS_FIRMWARE = 1 << 2;

  /** OACS bit 3: Namespace Management and Attachment. */
  public static final int OACS_NS_MANAGEMENT = 1 << 3;

  /** OACS bit 4: Device Self-test. */
  public static final int OACS_SELF_TEST = 1 << 4;

  /** OACS bit 5: Directives. */
  public static final int OACS_DIRECTIVES = 1 << 5;

  /** OACS bit 6: NVMe-MI Send and Receive. */
  public static final int OACS_NVME_MI = 1 << 6;

  /** OACS bit 7: Virtualization Management. */
  public static final int OACS_VIRTUALIZATION = 1 << 7;

  /** OACS bit 8: Doorbell Buffer Config. */
  public static final int OACS_DOORBELL_BUFFER = 1 << 8;

  /** OACS bit 9: Get LBA Status. */
  public static final int OACS_GET_LBA_STATUS = 1 << 9;

  /** OACS bit 10: Command and Feature Lockdown. */
  public static final int OACS_LOCKDOWN = 1 << 10;

  /** LPA bit 0: SMART log per namespace. */
  public static final int LPA_SMART_PER_NAMESPACE = 1;

  /** LPA bit 1: Commands Supported and Effects log. */
  public static final int LPA_COMMANDS_EFFECTS = 1 << 1;

  /** LPA bit 2: extended data for Get Log Page: 32-bit length and offset. */
  public static final int LPA_EXTENDED_DATA = 1 << 2;

  /** LPA bit 3: Telemetry logs. */
  public static final int LPA_TELEMETRY = 1 << 3;

  /** LPA bit 4: Persistent Event log. */
  public static final int LPA_PERSISTENT_EVENT = 1 << 4;

  /** LPA bit 5: Supported Log Pages and Feature Identifiers Effects logs. */
  public static final int LPA_SUPPORTED_LOG_PAGES = 1 << 5;

  /** ONCS bit 0: Compare. */
  public static final int ONCS_COMPARE = 1;

  /** ONCS bit 1: Write Uncorrectable. */
  public static final int ONCS_WRITE_UNCORRECTABLE = 1 << 1;

  /** ONCS bit 2: Dataset Management. */
  public static final int ONCS_DATASET_MANAGEMENT = 1 << 2;

  /** ONCS bit 3: Write Zeroes. */
  public static final int ONCS_WRITE_ZEROES = 1 << 3;

  /** ONCS bit 4: Save in Set Features and Select in Get Features. */
  public static final int ONCS_SAVE_SELECT = 1 << 4;

  /** ONCS bit 5: Reservations. */
  public static final int ONCS_RESERVATIONS = 1 << 5;

  /** ONCS bit 6: Timestamp feature. */
  public static final int ONCS_TIMESTAMP = 1 << 6;

  /** ONCS bit 7: Verify. */
  public static final int ONCS_VERIFY = 1 << 7;

  /** ONCS bit 8: Copy. */
  public static final int ONCS_COPY = 1 << 8;

  /** FUSES bit 0: Compare and Write as a fused pair. */
  public static final int FUSES_COMPARE_WRITE = 1;

  /** VWC bit 0: a volatile write cache is present. */
  public static final int VWC_PRESENT = 1;

  /** VWC bits 2:1 both set: Flush may address all namespaces at once. */
  public static final int VWC_FLUSH_ALL = 3 << 1;

  /** SGLS bit 0: SGLs, no alignment needed. */
  public static final int SGLS_SUPPORTED = 1;

  /** SGLS bit 1: SGLs, Dword aligned and sized. */
  public static final int SGLS_DWORD_ALIGNED = 1 << 1;

  /** SGLS bit 2: Keyed SGL Data Block descriptor. */
  public static final int SGLS_KEYED = 1 << 2;

  /** SGLS bit 16: SGL Bit Bucket descriptor. */
  public static final int SGLS_BIT_BUCKET = 1 << 16;

  /** SGLS bit 17: byte aligned contiguous metadata buffer. */
  public static final int SGLS_METADATA_BYTE_ALIGNED = 1 << 17;

  /** SGLS bit 18: SGLs longer than the data. */
  public static final int SGLS_OVERSIZED = 1 << 18;

  /** SGLS bit 19: metadata pointer to an SGL segment. */
  public static final int SGLS_METADATA_SGL = 1 << 19;

  /** SGLS bit 20: address as an offset. */
  public static final int SGLS_ADDRESS_OFFSET = 1 << 20;

  /** SGLS bit 21: Transport SGL Data Block descriptor. */
  public static final int SGLS_TRANSPORT = 1 << 21;

  private static final FieldTable TABLE = new FieldTable();

  private static final Field SQES =
      TABLE.flags(
          "SQES",
          512,
          1,
          "Submission Queue Entry Size: bits 3:0 required, bits 7:4 maximum, powers of two");
  private static final Field CQES =
      TABLE.flags(
          "CQES",
          513,
          1,
          "Completion Queue Entry Size: bits 3:0 required, bits 7:4 maximum, powers of two");
  private static final Field MAXCMD =
      TABLE.number("MAXCMD", 514, 2, "Maximum Outstanding Commands; 0 not reported");
  private static final Field NN =
      TABLE.number("NN", 516, 4, "Number of Namespaces: the largest NSID");
  private static final Field ONCS = TABLE.flags("ONCS", 520, 2, "Optional NVM Command Support");
  private static final Field FUSES = TABLE.flags("FUSES", 522, 2, "Fused Operation Support");
  private static final Field FNA = TABLE.flags("FNA", 524, 1, "Format NVM Attributes");
  private static final Field VWC = TABLE.flags("VWC", 525, 1, "Volatile Write Cache");
  private static final Field AWUN =
      TABLE.number("AWUN", 526, 2, "Atomic Write Unit Normal, logical blocks, zero-based");
  private static final Field AWUPF =
      TABLE.number("AWUPF", 528, 2, "Atomic Write Unit Power Fail, logical blocks, zero-based");
  private static final Field ICSVSCC =
      TABLE.flags("ICSVSCC", 530, 1, "I/O Command Set Vendor Specific Command Configuration");
  private static final Field NWPC =
      TABLE.flags("NWPC", 531, 1, "Namespace Write Protection Capabilities");
  private static final Field ACWU =
      TABLE.number("ACWU", 532, 2, "Atomic Compare and Write Unit, logical blocks, zero-based");
  private static final Field OCFS = TABLE.flags("OCFS", 534, 2, "Optional Copy Formats Supported");
  private static final Field SGLS = TABLE.flags("SGLS", 536, 4, "SGL Support");
  private static final Field MNAN =
      TABLE.number("MNAN", 540, 4, "Maximum Number of Allowed Namespaces");
  private static final Field MAXDNA =
      TABLE.number("MAXDNA", 544, 16, "Maximum Domain Namespace Attachments");
  private static final Field MAXCNA =
      TABLE.number("MAXCNA", 560, 4, "Maximum I/O Controller Namespace Attachments");
  private static final Field SUBNQN =
      TABLE.text("SUBNQN", 768, 256, "NVM Subsystem NVMe Qualified Name");

  private static final int PSD = 2048;

  /**
   * Wraps the first 4096 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public IdentifyController(MemorySegment segment) {
    super(segment);
  }

  @Override
  IdentifyController self() {
    return this;
  }

  @Override
  List<Field> table() {
    return Stream.concat(super.table().stream(), TABLE.fields().stream()).toList();
  }

  /** Submission Queue Entry Size: bits 3:0 required, bits 7:4 maximum, powers of two. */
  public int sqes() {
    return int32(SQES);
  }

  public IdentifyController sqes(int value) {
    SQES.number(s, value);
    return self();
  }

  /** Completion Queue Entry Size: bits 3:0 required, bits 7:4 maximum, powers of two. */
  public int cqes() {
    return int32(CQES);
  }

  public IdentifyController cqes(int value) {
    CQES.number(s, value);
    return self();
  }

  /** Maximum Outstanding Commands; 0 not reported. */
  public int maxcmd() {
    return int32(MAXCMD);
  }

  public IdentifyController maxcmd(int value) {
    MAXCMD.number(s, value);
    return self();
  }

  /** Number of Namespaces: the largest NSID. */
  public long nn() {
    return int64(NN);
  }

  public IdentifyController nn(long value) {
    NN.number(s, value);
    return self();
  }

  /** Optional NVM Command Support. */
  public int oncs() {
    return int32(ONCS);
  }

  public IdentifyController oncs(int value) {
    ONCS.number(s, value);
    return self();
  }

  /** Fused Operation Support. */
  public int fuses() {
    return int32(FUSES);
  }

  public IdentifyController fuses(int value) {
    FUSES.number(s, value);
    return self();
  }

  /** Format NVM Attributes. */
  public int fna() {
    return int32(FNA);
  }

  public IdentifyController fna(int value) {
    FNA.number(s, value);
    return self();
  }

  /** Volatile Write Cache. */
  public int vwc() {
    return int32(VWC);
  }

  public IdentifyController vwc(int value) {
    VWC.number(s, value);
    return self();
  }

  /** Atomic Write Unit Normal, logical blocks, zero-based. */
  public int awun() {
    return int32(AWUN);
  }

  public IdentifyController awun(int value) {
    AWUN.number(s, value);
    return self();
  }

  /** Atomic Write Unit Power Fail, logical blocks, zero-based. */
  public int awupf() {
    return int32(AWUPF);
  }

  public IdentifyController awupf(int value) {
    AWUPF.number(s, value);
    return self();
  }

  /** I/O Command Set Vendor Specific Command Configuration. */
  public int icsvscc() {
    return int32(ICSVSCC);
  }

  public IdentifyController icsvscc(int value) {
    ICSVSCC.number(s, value);
    return self();
  }

  /** Namespace Write Protection Capabilities. */
  public int nwpc() {
    return int32(NWPC);
  }

  public IdentifyController nwpc(int value) {
    NWPC.number(s, value);
    return self();
  }

  /** Atomic Compare and Write Unit, logical blocks, zero-based. */
  public int acwu() {
    return int32(ACWU);
  }

  public IdentifyController acwu(int value) {
    ACWU.number(s, value);
    return self();
  }

  /** Optional Copy Formats Supported. */
  public int ocfs() {
    return int32(OCFS);
  }

  public IdentifyController ocfs(int value) {
    OCFS.number(s, value);
    return self();
  }

  /** SGL Support. */
  public int sgls() {
    return int32(SGLS);
  }

  public IdentifyController sgls(int value) {
    SGLS.number(s, Integer.toUnsignedLong(value));
    return self();
  }

  /** Maximum Number of Allowed Namespaces. */
  public long mnan() {
    return int64(MNAN);
  }

  public IdentifyController mnan(long value) {
    MNAN.number(s, value);
    return self();
  }

  /** Maximum Domain Namespace Attachments. */
  public BigInteger maxdna() {
    return MAXDNA.big(s);
  }

  public IdentifyController maxdna(BigInteger value) {
    MAXDNA.big(s, value);
    return self();
  }

  /** The low 64 bits of {@link #maxdna()}. */
  public long maxdnaLow() {
    return int64(MAXDNA);
  }

  /** Sets the low 64 bits, the high ones stay. */
  public IdentifyController maxdnaLow(long value) {
    MAXDNA.number(s, value);
    return self();
  }

  /** Maximum I/O Controller Namespace Attachments. */
  public long maxcna() {
    return int64(MAXCNA);
  }

  public IdentifyController maxcna(long value) {
    MAXCNA.number(s, value);
    return self();
  }

  /** NVM Subsystem NVMe Qualified Name. */
  public String subnqn() {
    return SUBNQN.text(s);
  }

  public IdentifyController subnqn(String value) {
    SUBNQN.text(s, value, '\0');
    return self();
  }

  /** The descriptor of power state {@code index}, 0..31; a view of this structure's memory. */
  public PowerStateDescriptor psd(int index) {
    Objects.checkIndex(index, POWER_STATES);
    return new PowerStateDescriptor(
        s.asSlice(PSD + (long) index * PowerStateDescriptor.SIZE, PowerStateDescriptor.SIZE));
  }
}
