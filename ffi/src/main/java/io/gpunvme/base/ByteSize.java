package io.gpunvme.base;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Sizes in bytes as people write them: {@code 4096}, {@code 64MiB}, {@code 1.5g}. */
public final class ByteSize {
  private static final Pattern FORM =
      Pattern.compile("(?<number>\\d{1,19}(\\.\\d{1,9})?)\\s?(?<unit>[a-z]*)");
  private static final Map<String, Integer> SHIFTS =
      Map.ofEntries(
          Map.entry("", 0),
          Map.entry("b", 0),
          Map.entry("k", 10),
          Map.entry("kib", 10),
          Map.entry("m", 20),
          Map.entry("mib", 20),
          Map.entry("g", 30),
          Map.entry("gib", 30),
          Map.entry("t", 40),
          Map.entry("tib", 40));

  private ByteSize() {}

  /**
   * Reads a size: a number with B, K or KiB, M or MiB, G or GiB, T or TiB, in any case; all are
   * powers of 1024.
   *
   * @return 0..2^63 - 1
   * @throws InvalidRequestException if it is not a size, has a fraction of a byte, or is larger
   */
  public static long parse(String text) {
    Matcher form = FORM.matcher(text.toLowerCase(Locale.ROOT));
    Integer shift = form.matches() ? SHIFTS.get(form.group("unit")) : null;
    if (shift == null) {
      throw bad(text);
    }
    BigDecimal unit = new BigDecimal(BigInteger.ONE.shiftLeft(shift));
    try {
      return new BigDecimal(form.group("number"))
          .multiply(unit)
          .toBigIntegerExact()
          .longValueExact();
    } catch (ArithmeticException e) {
      throw bad(text);
    }
  }

  private static InvalidRequestException bad(String text) {
    return new InvalidRequestException(
        "'" + Printable.quote(text) + "' is not a size such as 4096, 512KiB or 1.5GiB");
  }
}
