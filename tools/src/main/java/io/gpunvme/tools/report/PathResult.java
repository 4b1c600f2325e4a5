package io.gpunvme.tools.report;

import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A result of the comparison of paths: {@code paths.<path>.<seq|rand4k>.<cold|warm>}, or one of a
 * sweep, {@code paths.<path>.<seq|rand>.<cold|warm>.<block size>}.
 *
 * @param sweep whether it is one of several block sizes
 * @param blockBytes of a sweep, otherwise 0
 */
record PathResult(
    Result result, String path, boolean random, boolean warm, boolean sweep, long blockBytes) {
  /** In the order in which they are drawn; each has its colour. */
  static final List<String> PATHS = List.of("direct", "cufile", "pinned", "mmap", "auto");

  private static final Pattern ID =
      Pattern.compile(
          "paths\\.(direct|cufile|pinned|mmap|auto)\\.(seq|rand|rand4k)\\.(cold|warm)"
              + "(?:\\.([0-9a-zA-Z]{1,12}))?");
  private static final Pattern SIZE = Pattern.compile("(\\d{1,10})([kmg]?)(?:i?b)?");
  private static final int KILO_SHIFT = 10;

  /** Nothing if the id or the unit is another one. */
  static Optional<PathResult> of(Result result) {
    Matcher id = ID.matcher(result.id());
    if (!id.matches()) {
      return Optional.empty();
    }
    boolean random = !id.group(2).equals("seq");
    boolean sweep = id.group(4) != null;
    boolean known =
        result.unit().equals(random ? "commands/s" : "GB/s")
            && id.group(2).equals("rand") == (random && sweep);
    long block = blockBytes(result, sweep ? id.group(4) : "");
    if (!known || (sweep && block <= 0)) {
      return Optional.empty();
    }
    return Optional.of(
        new PathResult(result, id.group(1), random, id.group(3).equals("warm"), sweep, block));
  }

  /** The condition says it exactly; the id says it in words. */
  private static long blockBytes(Result result, String word) {
    OptionalDouble exact = result.number("block_bytes");
    if (exact.isPresent()) {
      return (long) exact.getAsDouble();
    }
    Matcher size = SIZE.matcher(word.toLowerCase(Locale.ROOT));
    if (!size.matches()) {
      return 0;
    }
    int kilos = "kmg".indexOf(size.group(2)) + (size.group(2).isEmpty() ? 0 : 1);
    return Long.parseLong(size.group(1)) << (KILO_SHIFT * kilos);
  }

  String pattern() {
    return random ? "random" : "sequential";
  }

  String temperature() {
    return warm ? "warm" : "cold";
  }
}
