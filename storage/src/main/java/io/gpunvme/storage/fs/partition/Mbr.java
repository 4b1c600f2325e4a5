package io.gpunvme.storage.fs.partition;

import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.FileSystemException.Kind;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** A device's first sector as a master boot record (UEFI 2.10, 5.2.1 and 5.2.3). */
final class Mbr {
  private static final int BYTES = 512;
  private static final int ENTRIES_AT = 446;
  private static final int ENTRY_BYTES = 16;
  private static final int ENTRIES = 4;
  private static final int SIGNATURE_AT = 510;
  private static final int SIGNATURE = 0xAA55;
  private static final int ACTIVE = 0x80;
  private static final int TYPE_AT = 4;
  private static final int FIRST_AT = 8;
  private static final int COUNT_AT = 12;
  private static final int PROTECTIVE = 0xEE;
  private static final int FIRST_LOGICAL = 5;

  /** No tool makes more, and no chain is followed further. */
  private static final int MOST_LOGICAL = 256;

  private final Sectors sectors;
  private final boolean there;
  private final List<Entry> entries;

  private Mbr(Sectors sectors, boolean there, List<Entry> entries) {
    this.sectors = sectors;
    this.there = there;
    this.entries = entries;
  }

  /** One of the four entries; {@code first} counts from what the sector's place says. */
  private record Entry(int status, int type, long first, long count) {
    boolean isEmpty() {
      return type == 0 || count == 0;
    }

    boolean isExtended() {
      return type == 0x05 || type == 0x0F || type == 0x85;
    }
  }

  static Mbr read(Sectors sectors) {
    if (sectors.device().size() < BYTES) {
      return new Mbr(sectors, false, List.of());
    }
    ByteBuffer b = sectors.read(0, BYTES);
    List<Entry> entries = entries(b);
    boolean there =
        signed(b) && entries.stream().allMatch(e -> e.status() == 0 || e.status() == ACTIVE);
    return new Mbr(sectors, there, entries);
  }

  private static boolean signed(ByteBuffer b) {
    return Short.toUnsignedInt(b.getShort(SIGNATURE_AT)) == SIGNATURE;
  }

  private static List<Entry> entries(ByteBuffer b) {
    List<Entry> entries = new ArrayList<>(ENTRIES);
    for (int i = 0; i < ENTRIES; i++) {
      int at = ENTRIES_AT + i * ENTRY_BYTES;
      entries.add(
          new Entry(
              Byte.toUnsignedInt(b.get(at)),
              Byte.toUnsignedInt(b.get(at + TYPE_AT)),
              Integer.toUnsignedLong(b.getInt(at + FIRST_AT)),
              Integer.toUnsignedLong(b.getInt(at + COUNT_AT))));
    }
    return entries;
  }

  /** Whether it is one at all. */
  boolean isThere() {
    return there;
  }

  /** Whether it only keeps the place of a GPT. */
  boolean isProtective() {
    return there && entries.stream().anyMatch(e -> e.type() == PROTECTIVE);
  }

  /**
   * What it says.
   *
   * @throws FileSystemException if the chain of logical partitions comes back to itself
   */
  PartitionTable table() {
    List<Partition> partitions = new ArrayList<>();
    List<String> notes = new ArrayList<>();
    boolean extended = false;
    for (int i = 0; i < entries.size(); i++) {
      Entry e = entries.get(i);
      if (!e.isEmpty() && !e.isExtended()) {
        add(partitions, notes, i + 1, e, 0);
      }
    }
    for (Entry e : entries) {
      if (e.isExtended() && !e.isEmpty()) {
        if (extended) {
          notes.add("the MBR has several extended partitions; only the first is read");
          break;
        }
        extended = true;
        addLogical(partitions, notes, e);
      }
    }
    return new PartitionTable(PartitionTable.Kind.MBR, sectors.bytes(), partitions, notes);
  }

  private void add(List<Partition> all, List<String> notes, int number, Entry e, long base) {
    long first = base + e.first();
    if (!sectors.has(first, e.count())) {
      notes.add(
          "partition #%d is left out: sectors %d..%d are not on the device, which has %d"
              .formatted(number, first, first + e.count() - 1, sectors.count()));
      return;
    }
    all.add(
        new Partition(
            number,
            first * sectors.bytes(),
            e.count() * sectors.bytes(),
            PartitionTypes.mbr(e.type()),
            ""));
  }

  /**
   * Follows the chain: each link's first entry is a partition, counted from the link; its second is
   * the next link, counted from the extended partition.
   */
  private void addLogical(List<Partition> all, List<String> notes, Entry extended) {
    Set<Long> seen = new HashSet<>();
    long link = extended.first();
    for (int number = FIRST_LOGICAL; ; ) {
      String where = sectors.device().name() + ", extended partition, sector " + link;
      if (!seen.add(link)) {
        throw new FileSystemException(
            Kind.CORRUPT, where, "the chain of logical partitions comes back to itself");
      }
      if (seen.size() > MOST_LOGICAL) {
        throw new FileSystemException(
            Kind.CORRUPT, where, "more than " + MOST_LOGICAL + " logical partitions");
      }
      if (!sectors.has(link, 1)) {
        notes.add(
            "the chain of logical partitions goes past the end of the device at sector " + link);
        return;
      }
      ByteBuffer b = sectors.read(link, BYTES);
      if (!signed(b)) {
        notes.add("the chain of logical partitions ends without a signature at sector " + link);
        return;
      }
      long next = -1;
      for (Entry e : entries(b)) {
        if (!e.isEmpty() && !e.isExtended()) {
          add(all, notes, number++, e, link);
        } else if (!e.isEmpty() && next < 0) {
          next = extended.first() + e.first();
        }
      }
      if (next < 0) {
        return;
      }
      link = next;
    }
  }
}
