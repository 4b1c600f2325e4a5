package io.gpunvme.storage.fs.partition;

import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.FileSystemException.Kind;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;
import org.jspecify.annotations.Nullable;

/** A GUID partition table (UEFI 2.10, 5.3). */
final class Gpt {
  private static final long SIGNATURE = 0x5452415020494645L; // "EFI PART"
  private static final int REVISION_1 = 0x00010000;
  private static final int SMALLEST_HEADER = 92;
  private static final int REVISION_AT = 8;
  private static final int HEADER_BYTES_AT = 12;
  private static final int HEADER_CRC_AT = 16;
  private static final int MY_LBA_AT = 24;
  private static final int ALTERNATE_AT = 32;
  private static final int ENTRIES_LBA_AT = 72;
  private static final int COUNT_AT = 80;
  private static final int ENTRY_BYTES_AT = 84;
  private static final int ENTRIES_CRC_AT = 88;

  private static final int SMALLEST_ENTRY = 128;
  private static final int LARGEST_ENTRY = 4096;

  /** 128 entries of 128 bytes are usual. */
  private static final int MOST_BYTES = 4 << 20;

  private static final int FIRST_AT = 32;
  private static final int LAST_AT = 40;
  private static final int NAME_AT = 56;
  private static final int NAME_UNITS = 36;
  private static final int FIRST_PRINTABLE = 0x20;
  private static final int PRIMARY = 1;

  private final Sectors sectors;

  private Gpt(Sectors sectors) {
    this.sectors = sectors;
  }

  /** What is wrong with a header or its entries. */
  private static final class Damage extends Exception {
    private static final long serialVersionUID = 1;

    Damage(String what) {
      super(what);
    }

    String what() {
      return String.valueOf(getMessage());
    }
  }

  /** Checked numbers of a header. */
  private record Header(long alternate, long entriesLba, int count, int entryBytes, int crc) {}

  /** Whether a header seems to be at either end of the device. */
  static boolean isThere(Sectors sectors) {
    return signed(sectors, PRIMARY) || signed(sectors, sectors.count() - 1);
  }

  private static boolean signed(Sectors sectors, long lba) {
    return lba >= PRIMARY
        && sectors.has(lba, 1)
        && sectors.read(lba, Long.BYTES).getLong(0) == SIGNATURE;
  }

  /**
   * Reads the first table, or the second if that is damaged.
   *
   * @param mbr whether there is a protective MBR
   * @throws FileSystemException if both are damaged; the message says how
   */
  static PartitionTable read(Sectors sectors, boolean mbr) {
    Gpt gpt = new Gpt(sectors);
    List<String> notes = new ArrayList<>();
    if (!mbr) {
      notes.add("the GPT has no protective MBR; other systems may not find the GPT");
    }
    long last = sectors.count() - 1;
    Header primary = null;
    String why;
    try {
      primary = gpt.header(PRIMARY);
      return gpt.table(primary, notes);
    } catch (Damage e) {
      why = "the GPT at sector 1 is damaged (" + e.what() + ")";
    }
    // Where the first header, if it is sound, says the second is; else at the end.
    long backup = primary == null ? last : primary.alternate();
    try {
      notes.add(why + "; the one at sector " + backup + " was used");
      return gpt.table(gpt.header(backup), notes);
    } catch (Damage e) {
      throw new FileSystemException(
          Kind.CORRUPT,
          sectors.device().name() + ", partition table",
          "%s, and so is the one at sector %d (%s); gpunvme assumed sectors of %d bytes"
              .formatted(why, backup, e.what(), sectors.bytes()));
    }
  }

  private Header header(long lba) throws Damage {
    if (lba < PRIMARY || !sectors.has(lba, 1)) {
      throw new Damage("sector %d is not on the device".formatted(lba));
    }
    ByteBuffer b = sectors.read(lba, sectors.bytes());
    if (b.getLong(0) != SIGNATURE) {
      throw new Damage("no signature");
    }
    int bytes = b.getInt(HEADER_BYTES_AT);
    if (bytes < SMALLEST_HEADER || bytes > sectors.bytes()) {
      throw new Damage("a header of %d bytes".formatted(Integer.toUnsignedLong(bytes)));
    }
    int stored = b.getInt(HEADER_CRC_AT);
    b.putInt(HEADER_CRC_AT, 0);
    if (crc(b, bytes) != stored) {
      throw new Damage("the header's checksum is wrong");
    }
    if (b.getInt(REVISION_AT) != REVISION_1) {
      throw new Damage("revision %08Xh is unknown".formatted(b.getInt(REVISION_AT)));
    }
    if (b.getLong(MY_LBA_AT) != lba) {
      throw new Damage(
          "its header says it is sector " + Long.toUnsignedString(b.getLong(MY_LBA_AT)));
    }
    Header header =
        new Header(
            b.getLong(ALTERNATE_AT),
            b.getLong(ENTRIES_LBA_AT),
            b.getInt(COUNT_AT),
            b.getInt(ENTRY_BYTES_AT),
            b.getInt(ENTRIES_CRC_AT));
    checkEntries(header);
    return header;
  }

  private void checkEntries(Header h) throws Damage {
    int entry = h.entryBytes();
    if (Integer.bitCount(entry) != 1 || entry < SMALLEST_ENTRY || entry > LARGEST_ENTRY) {
      throw new Damage("entries of %d bytes".formatted(Integer.toUnsignedLong(entry)));
    }
    if (h.count() < 0 || h.count() > MOST_BYTES / entry) {
      throw new Damage("%d entries".formatted(Integer.toUnsignedLong(h.count())));
    }
    long length = Math.ceilDiv((long) h.count() * entry, sectors.bytes());
    if (h.entriesLba() < PRIMARY || !sectors.has(h.entriesLba(), length)) {
      throw new Damage(
          "its entries at sector %s are not on the device"
              .formatted(Long.toUnsignedString(h.entriesLba())));
    }
  }

  private static int crc(ByteBuffer b, int bytes) {
    CRC32 crc = new CRC32();
    crc.update(b.slice(0, bytes));
    return (int) crc.getValue();
  }

  private PartitionTable table(Header h, List<String> notes) throws Damage {
    int bytes = h.count() * h.entryBytes();
    ByteBuffer b = sectors.read(h.entriesLba(), bytes);
    if (crc(b, bytes) != h.crc()) {
      throw new Damage("the entries' checksum is wrong");
    }
    List<Partition> partitions = new ArrayList<>();
    for (int i = 0; i < h.count(); i++) {
      Partition partition = partition(b, i * h.entryBytes(), i + 1, notes);
      if (partition != null) {
        partitions.add(partition);
      }
    }
    return new PartitionTable(PartitionTable.Kind.GPT, sectors.bytes(), partitions, notes);
  }

  private @Nullable Partition partition(ByteBuffer b, int at, int number, List<String> notes) {
    String type = PartitionTypes.guid(b, at);
    if (PartitionTypes.isUnused(type)) {
      return null;
    }
    long first = b.getLong(at + FIRST_AT);
    long last = b.getLong(at + LAST_AT);
    if (first < 0
        || last < first
        || last == Long.MAX_VALUE
        || !sectors.has(first, last - first + 1)) {
      notes.add(
          "partition #%d is left out: sectors %s..%s are not on the device, which has %d"
              .formatted(
                  number,
                  Long.toUnsignedString(first),
                  Long.toUnsignedString(last),
                  sectors.count()));
      return null;
    }
    return new Partition(
        number,
        first * sectors.bytes(),
        (last - first + 1) * sectors.bytes(),
        PartitionTypes.gpt(type),
        name(b, at + NAME_AT));
  }

  private static String name(ByteBuffer b, int at) {
    StringBuilder name = new StringBuilder();
    byte[] units = new byte[NAME_UNITS * Character.BYTES];
    b.get(at, units);
    String all = new String(units, StandardCharsets.UTF_16LE);
    for (int i = 0; i < all.length() && all.charAt(i) != 0; i++) {
      char c = all.charAt(i);
      name.append(c < FIRST_PRINTABLE ? '\uFFFD' : c);
    }
    return name.toString();
  }
}
