package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Identify Namespace data structure of the NVM Command Set: 4096 bytes (NVM 1.0, 4.1.5.1). Getters
 * and setters are named after the specification's abbreviations; setters take the same unit and
 * return this view.
 */
public final class IdentifyNamespace extends NamespaceAttributes {
  /** Bytes of the structure. */
  public static final int SIZE = 4096;

  /** LBA formats in the structure. */
  public static final int LBA_FORMATS = 64;

  /** NSFEAT bit 0: thin provisioning. */
  public static final int NSFEAT_THIN = 1;

  /** NSFEAT bit 1: NAWUN, NAWUPF and NACWU are defined. */
  public static final int NSFEAT_ATOMIC = 1 << 1;

  /** NSFEAT bit 2: the Deallocated or Unwritten Logical Block error is supported. */
  public static final int NSFEAT_DULBE = 1 << 2;

  /** NSFEAT bit 4: NPWG, NPWA, NPDG, NPDA and NOWS are defined. */
  public static final int NSFEAT_OPTIMAL_IO = 1 << 4;

  /** FLBAS bit 4: metadata follows the data of each block in the same buffer. */
  public static final int FLBAS_METADATA_EXTENDED = 1 << 4;

  private static final int LBAF = 128;

  private static final FieldTable TABLE = new FieldTable();

  private static final Field NPWG =
      TABLE.number(
          "NPWG", 64, 2, "Namespace Preferred Write Granularity, logical blocks, zero-based");
  private static final Field NPWA =
      TABLE.number(
          "NPWA", 66, 2, "Namespace Preferred Write Alignment, logical blocks, zero-based");
  private static final Field NPDG =
      TABLE.number(
          "NPDG", 68, 2, "Namespace Preferred Deallocate Granularity, logical blocks, zero-based");
  private static final Field NPDA =
      TABLE.number(
          "NPDA", 70, 2, "Namespace Preferred Deallocate Alignment, logical blocks, zero-based");
  private static final Field NOWS =
      TABLE.number("NOWS", 72, 2, "Namespace Optimal Write Size, logical blocks, zero-based");
  private static final Field MSSRL =
      TABLE.number("MSSRL", 74, 2, "Maximum Single Source Range Length of Copy, logical blocks");
  private static final Field MCL =
      TABLE.number("MCL", 76, 4, "Maximum Copy Length, logical blocks");
  private static final Field MSRC =
      TABLE.number("MSRC", 80, 1, "Maximum Source Range Count of Copy, zero-based");
  private static final Field NULBAF =
      TABLE.number("NULBAF", 82, 1, "Number of Unique Attribute LBA Formats");
  private static final Field ANAGRPID = TABLE.number("ANAGRPID", 92, 4, "ANA Group Identifier");
  private static final Field NSATTR =
      TABLE.flags("NSATTR", 99, 1, "Namespace Attributes: bit 0 write protected");
  private static final Field NVMSETID = TABLE.number("NVMSETID", 100, 2, "NVM Set Identifier");
  private static final Field ENDGID = TABLE.number("ENDGID", 102, 2, "Endurance Group Identifier");
  private static final Field NGUID =
      TABLE.bytes("NGUID", 104, 16, "Namespace Globally Unique Identifier");
  private static final Field EUI64 =
      TABLE.bytes("EUI64", 120, 8, "IEEE Extended Unique Identifier");

  /**
   * Wraps the first 4096 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public IdentifyNamespace(MemorySegment segment) {
    super(segment);
  }

  @Override
  List<Field> table() {
    return Stream.concat(super.table().stream(), TABLE.fields().stream()).toList();
  }

  /** The fields of the table, then the LBA formats NLBAF tells of. */
  @Override
  public List<FieldValue> fields() {
    return Stream.concat(
            super.fields().stream(),
            IntStream.range(0, Math.min(nlbaf() + 1, LBA_FORMATS)).mapToObj(this::describeFormat))
        .toList();
  }

  private FieldValue describeFormat(int index) {
    LbaFormat format = lbaf(index);
    String text =
        "MS %d LBADS %d RP %d%s"
            .formatted(
                format.ms(),
                format.lbads(),
                format.rp(),
                index == formatIndex() ? " (in use)" : "");
    return new FieldValue("LBAF" + index, text, text, "LBA Format " + index);
  }

  @Override
  IdentifyNamespace self() {
    return this;
  }

  /** Namespace Preferred Write Granularity, logical blocks, zero-based. */
  public int npwg() {
    return int32(NPWG);
  }

  public IdentifyNamespace npwg(int value) {
    NPWG.number(s, value);
    return self();
  }

  /** Namespace Preferred Write Alignment, logical blocks, zero-based. */
  public int npwa() {
    return int32(NPWA);
  }

  public IdentifyNamespace npwa(int value) {
    NPWA.number(s, value);
    return this;
  }

  /** Namespace Preferred Deallocate Granularity, logical blocks, zero-based. */
  public int npdg() {
    return int32(NPDG);
  }

  public IdentifyNamespace npdg(int value) {
    NPDG.number(s, value);
    return this;
  }

  /** Namespace Preferred Deallocate Alignment, logical blocks, zero-based. */
  public int npda() {
    return int32(NPDA);
  }

  public IdentifyNamespace npda(int value) {
    NPDA.number(s, value);
    return this;
  }

  /** Namespace Optimal Write Size, logical blocks, zero-based. */
  public int nows() {
    return int32(NOWS);
  }

  public IdentifyNamespace nows(int value) {
    NOWS.number(s, value);
    return this;
  }

  /** Maximum Single Source Range Length of Copy, logical blocks. */
  public int mssrl() {
    return int32(MSSRL);
  }

  public IdentifyNamespace mssrl(int value) {
    MSSRL.number(s, value);
    return this;
  }

  /** Maximum Copy Length, logical blocks. */
  public long mcl() {
    return int64(MCL);
  }

  public IdentifyNamespace mcl(long value) {
    MCL.number(s, value);
    return this;
  }

  /** Maximum Source Range Count of Copy, zero-based. */
  public int msrc() {
    return int32(MSRC);
  }

  public IdentifyNamespace msrc(int value) {
    MSRC.number(s, value);
    return this;
  }

  /** Number of Unique Attribute LBA Formats. */
  public int nulbaf() {
    return int32(NULBAF);
  }

  public IdentifyNamespace nulbaf(int value) {
    NULBAF.number(s, value);
    return this;
  }

  /** ANA Group Identifier. */
  public long anagrpid() {
    return int64(ANAGRPID);
  }

  public IdentifyNamespace anagrpid(long value) {
    ANAGRPID.number(s, value);
    return this;
  }

  /** Namespace Attributes: bit 0 write protected. */
  public int nsattr() {
    return int32(NSATTR);
  }

  public IdentifyNamespace nsattr(int value) {
    NSATTR.number(s, value);
    return this;
  }

  /** NVM Set Identifier. */
  public int nvmsetid() {
    return int32(NVMSETID);
  }

  public IdentifyNamespace nvmsetid(int value) {
    NVMSETID.number(s, value);
    return this;
  }

  /** Endurance Group Identifier. */
  public int endgid() {
    return int32(ENDGID);
  }

  public IdentifyNamespace endgid(int value) {
    ENDGID.number(s, value);
    return this;
  }

  /** Namespace Globally Unique Identifier. */
  public byte[] nguid() {
    return NGUID.bytes(s);
  }

  public IdentifyNamespace nguid(byte[] value) {
    NGUID.bytes(s, value);
    return this;
  }

  /** IEEE Extended Unique Identifier; the one big endian field, first byte on top. 0 means none. */
  public long eui64() {
    return Long.reverseBytes(Wire.i64(s, EUI64.offset()));
  }

  public IdentifyNamespace eui64(long value) {
    Wire.i64(s, EUI64.offset(), Long.reverseBytes(value));
    return this;
  }

  /** LBA format {@code index}, 0..63. */
  public LbaFormat lbaf(int index) {
    return LbaFormat.of(Wire.i32(s, lbafOffset(index)));
  }

  /** Sets LBA format {@code index}, 0..63. */
  public IdentifyNamespace lbaf(int index, LbaFormat format) {
    Wire.i32(s, lbafOffset(index), format.dword());
    return this;
  }

  /**
   * Index of the LBA format in use: FLBAS bits 3:0, and bits 6:5 when there are more than 16
   * formats.
   */
  public int formatIndex() {
    int flbas = flbas();
    int low = flbas & 0xF;
    return nlbaf() + nulbaf() > 15 ? (((flbas >>> 5) & 3) << 4) | low : low;
  }

  /** The LBA format in use. */
  public LbaFormat format() {
    return lbaf(formatIndex());
  }

  private static long lbafOffset(int index) {
    return LBAF + (long) Objects.checkIndex(index, LBA_FORMATS) * Integer.BYTES;
  }
}
