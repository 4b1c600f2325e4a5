package io.gpunvme.storage.fs.fat;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** The name of eight and three bytes that every entry has (specification: "DIR_Name"). */
final class ShortName {
  static final int BYTES = 11;

  /** What stands for a character that no name may have. */
  static final char REPLACEMENT = '\uFFFD';

  private static final int BASE = 8;
  private static final int KANJI = 0x05; // stands for E5h, which marks an entry as deleted
  private static final int DELETED = 0xE5;
  private static final int LOWER_BASE = 0x08;
  private static final int LOWER_EXTENSION = 0x10;
  private static final int FIRST_PRINTABLE = 0x20;
  private static final int ASCII = 0x80;

  /** Code page 437 from 80h on (unicode.org, VENDORS/MICSFT/PC/CP437.TXT). */
  private static final String CP437 =
      "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐"
          + "└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00A0";

  private ShortName() {}

  /**
   * The name to be shown.
   *
   * @param entry a folder's entry, from its first byte on
   * @param caseBits DIR_NTRes: whether base and extension are shown in lower case
   */
  static String decode(ByteBuffer entry, int at, int caseBits) {
    String base = part(entry, at, BASE);
    String extension = part(entry, at + BASE, BYTES - BASE);
    if ((caseBits & LOWER_BASE) != 0) {
      base = lower(base);
    }
    if ((caseBits & LOWER_EXTENSION) != 0) {
      extension = lower(extension);
    }
    if (base.isEmpty()) {
      base = String.valueOf(REPLACEMENT);
    }
    return extension.isEmpty() ? base : base + "." + extension;
  }

  private static String part(ByteBuffer entry, int at, int length) {
    StringBuilder text = new StringBuilder(length);
    for (int i = 0; i < length; i++) {
      int b = Byte.toUnsignedInt(entry.get(at + i));
      if (i == 0 && length == BASE && b == KANJI) {
        b = DELETED;
      }
      boolean legal = b >= FIRST_PRINTABLE && b != '/' && b != 0x7F;
      text.append(legal ? decode(b) : REPLACEMENT);
    }
    int end = text.length();
    while (end > 0 && text.charAt(end - 1) == ' ') {
      end--;
    }
    return text.substring(0, end);
  }

  private static char decode(int b) {
    return b < ASCII ? (char) b : CP437.charAt(b - ASCII);
  }

  /** One character for one, as the kernel's tables have it. */
  private static String lower(String text) {
    StringBuilder lower = new StringBuilder(text.length());
    for (int i = 0; i < text.length(); i++) {
      lower.append(Character.toLowerCase(text.charAt(i)));
    }
    return lower.toString();
  }

  /** A volume's label from its eleven bytes; {@code NO NAME} stands for none. */
  static String label(byte[] raw) {
    StringBuilder text = new StringBuilder(raw.length);
    for (int i = 0; i < raw.length; i++) {
      int b = Byte.toUnsignedInt(raw[i]);
      if (i == 0 && b == KANJI) {
        b = DELETED;
      }
      text.append(b >= FIRST_PRINTABLE && b != 0x7F ? decode(b) : REPLACEMENT);
    }
    String label = text.toString().stripTrailing();
    return label.equals("NO NAME") ? "" : label;
  }

  /** Whether it is one of the two names every folder but the root begins with. */
  static boolean isDots(ByteBuffer entry, int at) {
    byte[] raw = new byte[BYTES];
    entry.get(at, raw);
    byte[] dots = ".          ".getBytes(StandardCharsets.US_ASCII);
    if (Arrays.equals(raw, dots)) {
      return true;
    }
    dots[1] = '.';
    return Arrays.equals(raw, dots);
  }

  /** What long names say of the short one that they belong to (specification: "ChkSum"). */
  static int checksum(ByteBuffer entry, int at) {
    int sum = 0;
    for (int i = 0; i < BYTES; i++) {
      sum = ((sum & 1) << 7) + (sum >> 1) + Byte.toUnsignedInt(entry.get(at + i)) & 0xFF;
    }
    return sum;
  }
}
