package io.gpunvme.storage.fs.fat;

import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Puts a long name together from the entries before a short one (specification: "FAT Long Directory
 * Entries"): thirteen UTF-16 units each, the last part first. Parts that do not belong together, or
 * not to the short name that follows, are forgotten, as by every other reader. Not for several
 * threads.
 */
final class LongName {
  private static final int LAST = 0x40;
  private static final int MOST_PARTS = 20;
  private static final int MOST_UNITS = 255;
  private static final int UNITS = 13;
  private static final int CHECKSUM_AT = 13;
  private static final int FIRST_PRINTABLE = 0x20;
  private static final int DELETE = 0x7F;

  /** Where the units are in an entry. */
  private static final int[] PLACES = {1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30};

  private final char[] units = new char[MOST_PARTS * UNITS];
  private int parts;
  private int missing;
  private int checksum;

  /** Forgets what there is. */
  void clear() {
    parts = 0;
    missing = 0;
  }

  /** Takes a part. */
  void add(ByteBuffer entry, int at) {
    int order = Byte.toUnsignedInt(entry.get(at));
    int sum = Byte.toUnsignedInt(entry.get(at + CHECKSUM_AT));
    int number = order & ~LAST;
    if ((order & LAST) != 0) {
      parts = number <= MOST_PARTS ? number : 0;
      missing = parts;
      checksum = sum;
    }
    if (parts == 0 || number != missing || sum != checksum) {
      clear();
      return;
    }
    missing--;
    for (int i = 0; i < UNITS; i++) {
      units[missing * UNITS + i] = (char) entry.getShort(at + PLACES[i]);
    }
  }

  /**
   * The name, and forgets it.
   *
   * @param sum of the short name that follows
   * @return null if there is none, or none that could be used: then the short name is the name
   */
  @Nullable String take(int sum) {
    boolean whole = parts > 0 && missing == 0 && sum == checksum;
    int length = 0;
    while (whole && length < parts * UNITS && units[length] != 0) {
      length++;
    }
    clear();
    if (length == 0 || length > MOST_UNITS) {
      return null;
    }
    String name = new String(units, 0, length);
    return usable(name) ? name : null;
  }

  private static boolean usable(String name) {
    if (name.equals(".") || name.equals("..")) {
      return false;
    }
    // A surrogate without its other half is a code point of its own.
    return name.codePoints()
        .allMatch(
            c ->
                c >= FIRST_PRINTABLE
                    && c != '/'
                    && c != DELETE
                    && !(c >= Character.MIN_SURROGATE && c <= Character.MAX_SURROGATE));
  }
}
