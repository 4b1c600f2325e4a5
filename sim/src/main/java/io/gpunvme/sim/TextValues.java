package io.gpunvme.sim;

import io.gpunvme.base.ByteSize;
import io.gpunvme.base.InvalidRequestException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Locale;
import java.util.Map;

/** Reads the numbers people write in device options and fault rules; errors name the key. */
final class TextValues {
  private static final Map<String, Long> DURATIONS =
      Map.of("", 1L, "ns", 1L, "us", 1_000L, "ms", 1_000_000L, "s", 1_000_000_000L);

  private static final String DURATION = "a duration such as 50us, 2ms or 1s";

  private TextValues() {}

  /** A whole number, decimal or with {@code 0x}, up to 64 bits unsigned. */
  static long number(String key, String text) {
    try {
      boolean hex = text.startsWith("0x") || text.startsWith("0X");
      return hex ? Long.parseUnsignedLong(text.substring(2), 16) : Long.parseUnsignedLong(text);
    } catch (NumberFormatException e) {
      throw bad(key, text, "a whole number (decimal or 0x…)");
    }
  }

  /** A whole number from 0 to {@code limit}. */
  static int number(String key, String text, int limit) {
    long value = number(key, text);
    if (value < 0 || value > limit) {
      throw bad(key, text, "a whole number from 0 to " + limit);
    }
    return (int) value;
  }

  /** A size in bytes, as {@link ByteSize} reads it. */
  static long size(String key, String text) {
    try {
      return ByteSize.parse(text);
    } catch (InvalidRequestException e) {
      throw bad(key, text, "a size such as 4096, 512KiB or 1GiB");
    }
  }

  /** A duration in ns: a number with ns, us, ms or s. */
  static long duration(String key, String text) {
    int end = text.length();
    while (end > 0 && Character.isLetter(text.charAt(end - 1))) {
      end--;
    }
    Long unit = DURATIONS.get(text.substring(end).toLowerCase(Locale.ROOT));
    String digits = text.substring(0, end);
    if (unit == null || !digits.matches("\\d{1,19}(\\.\\d{1,9})?")) {
      throw bad(key, text, DURATION);
    }
    BigInteger value = new BigDecimal(digits).multiply(BigDecimal.valueOf(unit)).toBigInteger();
    if (value.bitLength() > 62) {
      throw bad(key, text, DURATION);
    }
    return value.longValue();
  }

  /** on/off, yes/no, true/false or 1/0. */
  static boolean flag(String key, String text) {
    return switch (text.toLowerCase(Locale.ROOT)) {
      case "on", "yes", "true", "1" -> true;
      case "off", "no", "false", "0" -> false;
      default -> throw bad(key, text, "on or off");
    };
  }

  /** The error for a value that is not what its key wants. */
  static InvalidRequestException bad(String key, String text, String wanted) {
    return new InvalidRequestException(key + "=" + text + " is not " + wanted);
  }
}
