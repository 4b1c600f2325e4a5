package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Identify Namespace data structure of the NVM Command Set: 4096 bytes (NVM 1.0, 4.1.5.1). */
public final class IdentifyNamespace extends View<IdentifyNamespace> {
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

  public static final Field NSZE = TABLE.number("NSZE", 0, 8, "Namespace Size, logical blocks");
  public static final Field NCAP = TABLE.number("NCAP", 8, 8, "Namespace Capacity, logical blocks");
  public static final Field NUSE =
      TABLE.number("NUSE", 16, 8, "Namespace Utilization, logical blocks");
  public static final Field NSFEAT = TABLE.flags("NSFEAT", 24, 1, "Namespace Features");
  public static final Field NLBAF =
      TABLE.number("NLBAF", 25, 1, "Number of LBA Formats, zero-based");
  public static final Field FLBAS =
      TABLE.flags(
          "FLBAS",
          26,
          1,
          "Formatted LBA Size: bits 3:0 and 6:5 format index, bit 4 metadata at the end of the"
              + " data");
  public static final Field MC = TABLE.flags("MC", 27, 1, "Metadata Capabilities");
  public static final Field DPC =
      TABLE.flags("DPC", 28, 1, "End-to-end Data Protection Capabilities");
  public static final Field DPS =
      TABLE.flags("DPS", 29, 1, "End-to-end Data Protection Type Settings");
  public static final Field NMIC =
      TABLE.flags("NMIC", 30, 1, "Namespace Multi-path I/O and Sharing Capabilities");
  public static final Field RESCAP = TABLE.flags("RESCAP", 31, 1, "Reservation Capabilities");
  public static final Field FPI = TABLE.flags("FPI", 32, 1, "Format Progress Indicator");
  public static final Field DLFEAT =
      TABLE.flags(
          "DLFEAT",
          33,
          1,
          "Deallocate Logical Block Features: bits 2:0 what deallocated blocks read as, bit 3 Write"
              + " Zeroes may deallocate");
  public static final Field NAWUN =
      TABLE.number(
          "NAWUN", 34, 2, "Namespace Atomic Write Unit Normal, logical blocks, zero-based");
  public static final Field NAWUPF =
      TABLE.number(
          "NAWUPF", 36, 2, "Namespace Atomic Write Unit Power Fail, logical blocks, zero-based");
  public static final Field NACWU =
      TABLE.number(
          "NACWU", 38, 2, "Namespace Atomic Compare and Write Unit, logical blocks, zero-based");
  public static final Field NABSN =
      TABLE.number(
          "NABSN", 40, 2, "Namespace Atomic Boundary Size Normal, logical blocks, zero-based");
  public static final Field NABO =
      TABLE.number("NABO", 42, 2, "Namespace Atomic Boundary Offset, logical blocks");
  public static final Field NABSPF =
      TABLE.number(
          "NABSPF", 44, 2, "Namespace Atomic Boundary Size Power Fail, logical blocks, zero-based");
  public static final Field NOIOB =
      TABLE.number(
          "NOIOB", 46, 2, "Namespace Optimal I/O Boundary, logical blocks; 0 not reported");
  public static final Field NVMCAP = TABLE.number("NVMCAP", 48, 16, "NVM Capacity in bytes");
  public static final Field NPWG =
      TABLE.number(
          "NPWG", 64, 2, "Namespace Preferred Write Granularity, logical blocks, zero-based");
  public static final Field NPWA =
      TABLE.number(
          "NPWA", 66, 2, "Namespace Preferred Write Alignment, logical blocks, zero-based");
  public static final Field NPDG =
      TABLE.number(
          "NPDG", 68, 2, "Namespace Preferred Deallocate Granularity, logical blocks, zero-based");
  public static final Field NPDA =
      TABLE.number(
          "NPDA", 70, 2, "Namespace Preferred Deallocate Alignment, logical blocks, zero-based");
  public static final Field NOWS =
      TABLE.number("NOWS", 72, 2, "Namespace Optimal Write Size, logical blocks, zero-based");
  public static final Field MSSRL =
      TABLE.number("MSSRL", 74, 2, "Maximum Single Source Range Length of Copy, logical blocks");
  public static final Field MCL = TABLE.number("MCL", 76, 4, "Maximum Copy Length, logical blocks");
  public static final Field MSRC =
      TABLE.number("MSRC", 80, 1, "Maximum Source Range Count of Copy, zero-based");
  public static final Field NULBAF =
      TABLE.number("NULBAF", 82, 1, "Number of Unique Attribute LBA Formats");
  public static final Field ANAGRPID = TABLE.number("ANAGRPID", 92, 4, "ANA Group Identifier");
  public static final Field NSATTR =
      TABLE.flags("NSATTR", 99, 1, "Namespace Attributes: bit 0 write protected");
  public static final Field NVMSETID = TABLE.number("NVMSETID", 100, 2, "NVM Set Identifier");
  public static final Field ENDGID = TABLE.number("ENDGID", 102, 2, "Endurance Group Identifier");
  public static final Field NGUID =
      TABLE.bytes("NGUID", 104, 16, "Namespace Globally Unique Identifier");
  public static final Field EUI64 = TABLE.bytes("EUI64", 120, 8, "IEEE Extended Unique Identifier");

  /**
   * Wraps the first 4096 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public IdentifyNamespace(MemorySegment segment) {
    super(segment, SIZE, TABLE);
  }

  /** The fields of the table, then the LBA formats NLBAF tells of. */
  @Override
  public List<FieldValue> fields() {
    return Stream.concat(
            super.fields().stream(),
            IntStream.range(0, Math.min(getInt(NLBAF) + 1, LBA_FORMATS))
                .mapToObj(this::describeFormat))
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
    int flbas = getInt(FLBAS);
    int low = flbas & 0xF;
    return getInt(NLBAF) + getInt(NULBAF) > 15 ? (((flbas >>> 5) & 3) << 4) | low : low;
  }

  /** The LBA format in use. */
  public LbaFormat format() {
    return lbaf(formatIndex());
  }

  private static long lbafOffset(int index) {
    return LBAF + (long) Objects.checkIndex(index, LBA_FORMATS) * Integer.BYTES;
  }
}
