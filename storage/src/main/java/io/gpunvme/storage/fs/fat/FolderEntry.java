package io.gpunvme.storage.fs.fat;

import java.nio.ByteBuffer;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneOffset;
import org.jspecify.annotations.Nullable;

/**
 * What a folder says of a file (specification: "FAT 32 Byte Directory Entry Structure").
 *
 * @param name long name if it has one, else the short one
 * @param shortName alias under which it is found too
 * @param firstCluster 0 if it has none
 * @param size bytes; 0 for a folder
 */
record FolderEntry(
    String name,
    String shortName,
    int attributes,
    int firstCluster,
    long size,
    @Nullable Instant created,
    Instant modified,
    @Nullable Instant accessed) {
  static final int BYTES = 32;
  static final int END = 0;
  static final int DELETED = 0xE5;
  static final int ATTRIBUTES_AT = 11;
  static final int VOLUME = 0x08;
  static final int FOLDER = 0x10;

  /** All of these set, and nothing else of {@link #LONG_NAME_MASK}: part of a long name. */
  static final int LONG_NAME = 0x0F;

  static final int LONG_NAME_MASK = 0x3F;

  private static final int CASE_AT = 12;
  private static final int CREATED_HUNDREDTHS_AT = 13;
  private static final int CREATED_TIME_AT = 14;
  private static final int CREATED_DATE_AT = 16;
  private static final int ACCESSED_DATE_AT = 18;
  private static final int CLUSTER_HIGH_AT = 20;
  private static final int MODIFIED_TIME_AT = 22;
  private static final int MODIFIED_DATE_AT = 24;
  private static final int CLUSTER_LOW_AT = 26;
  private static final int SIZE_AT = 28;

  private static final int CLUSTER_MASK = 0x0FFFFFFF;
  private static final int FIRST_YEAR = 1980;
  private static final int MONTHS = 12;
  private static final int MILLIS_PER_HUNDREDTH = 10;
  private static final String LETTERS = "rhsvda";

  /** Reads an entry that is neither deleted nor part of a long name. */
  static FolderEntry read(ByteBuffer b, int at, @Nullable String longName) {
    int attributes = b.get(at + ATTRIBUTES_AT) & LONG_NAME_MASK;
    String shortName = ShortName.decode(b, at, b.get(at + CASE_AT));
    int cluster = u16(b, at + CLUSTER_HIGH_AT) << Short.SIZE | u16(b, at + CLUSTER_LOW_AT);
    Instant created = time(b, at + CREATED_DATE_AT, at + CREATED_TIME_AT);
    if (created != null) {
      int hundredths = Byte.toUnsignedInt(b.get(at + CREATED_HUNDREDTHS_AT));
      created = created.plusMillis((long) hundredths * MILLIS_PER_HUNDREDTH);
    }
    Instant modified = time(b, at + MODIFIED_DATE_AT, at + MODIFIED_TIME_AT);
    return new FolderEntry(
        longName == null ? shortName : longName,
        shortName,
        attributes,
        cluster & CLUSTER_MASK,
        (attributes & FOLDER) != 0 ? 0 : Integer.toUnsignedLong(b.getInt(at + SIZE_AT)),
        created,
        modified == null ? Instant.EPOCH : modified,
        time(b, at + ACCESSED_DATE_AT, -1));
  }

  private static int u16(ByteBuffer b, int at) {
    return Short.toUnsignedInt(b.getShort(at));
  }

  /** A time that means one, whatever its bits are; null for no date. Two seconds at a time. */
  private static @Nullable Instant time(ByteBuffer b, int dateAt, int timeAt) {
    int date = u16(b, dateAt);
    if (date == 0) {
      return null;
    }
    int month = Math.clamp(date >> 5 & 0x0F, 1, MONTHS);
    LocalDate first = LocalDate.of(FIRST_YEAR + (date >> 9), month, 1);
    LocalDate day = first.plusDays(Math.max(0, (date & 0x1F) - 1));
    int time = timeAt < 0 ? 0 : u16(b, timeAt);
    long seconds = (time >> 11) * 3600L + (time >> 5 & 0x3F) * 60L + (time & 0x1F) * 2L;
    return day.atStartOfDay().toInstant(ZoneOffset.UTC).plusSeconds(seconds);
  }

  boolean isFolder() {
    return (attributes & FOLDER) != 0;
  }

  /**
   * A letter for each attribute that is set: read-only, hidden, system, volume, folder, archive.
   */
  String attributeText() {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < LETTERS.length(); i++) {
      text.append((attributes & 1 << i) != 0 ? LETTERS.charAt(i) : '-');
    }
    return text.toString();
  }
}
