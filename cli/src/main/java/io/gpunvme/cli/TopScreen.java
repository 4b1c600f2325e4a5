package io.gpunvme.cli;

import io.gpunvme.base.Printable;
import io.gpunvme.cli.output.Table;
import io.gpunvme.tools.top.TopController;
import io.gpunvme.tools.top.TopLook;
import io.gpunvme.tools.top.TopQueue;
import io.gpunvme.tools.top.TopRates;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Rounds of {@code gpunvme top} as text. On a terminal each is drawn over the last; no mode of the
 * terminal is changed, so there is nothing to put back.
 */
final class TopScreen {
  private static final String HOME = "\u001b[H";
  private static final String CLEAR_TO_END_OF_LINE = "\u001b[K";
  private static final String CLEAR_TO_END_OF_SCREEN = "\u001b[J";
  private static final String UNKNOWN = "-";
  private static final double GIGA = 1e9;
  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("HH:mm:ss", Locale.ROOT).withZone(ZoneId.systemDefault());

  private final PrintStream out;
  private final int columns;

  /**
   * @param columns width of the terminal behind {@code out}; 0: it is not a terminal
   */
  TopScreen(PrintStream out, int columns) {
    this.out = out;
    this.columns = columns;
  }

  void show(Instant time, TopLook look) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (PrintStream text = new PrintStream(bytes, false, StandardCharsets.UTF_8)) {
      print(text, time, look);
    }
    String all = bytes.toString(StandardCharsets.UTF_8);
    if (columns == 0) {
      out.println(all);
    } else {
      out.print(HOME);
      all.lines().forEach(line -> out.print(cut(line) + CLEAR_TO_END_OF_LINE + "\r\n"));
      out.print(CLEAR_TO_END_OF_SCREEN);
    }
    out.flush();
  }

  private String cut(String line) {
    return line.codePointCount(0, line.length()) <= columns
        ? line
        : line.substring(0, line.offsetByCodePoints(0, columns));
  }

  private static void print(PrintStream text, Instant time, TopLook look) {
    text.println(
        "%s  %s"
            .formatted(
                TIME.format(time),
                look.controllers().isEmpty()
                    ? "no process that can be seen has a controller open"
                    : "latency is a mean; retries and recoveries since a controller was opened"));
    if (!look.controllers().isEmpty()) {
      table(look).print(text);
    }
    look.undriven()
        .forEach(device -> text.println(Printable.of(device) + ": nobody drives it now"));
    look.problems().forEach(problem -> text.println(Printable.of(problem)));
  }

  private static Table table(TopLook look) {
    Table table =
        new Table(0)
            .row(
                "DEVICE",
                "SIDE",
                "PID",
                "PROGRAM",
                "QUEUE",
                "BY",
                "COMMANDS/S",
                "GB/S",
                "LATENCY",
                "OUTSTANDING",
                "RETRIES",
                "RECOVERIES");
    for (TopController one : look.controllers()) {
      row(
          table,
          new String[] {
            Printable.of(one.device()),
            one.side(),
            Long.toString(one.pid()),
            Printable.of(one.program()),
            "all",
            ""
          },
          one.rates(),
          whole(one.recoveries()));
      for (TopQueue queue : one.queues()) {
        String by = queue.initiator() == null ? UNKNOWN : Printable.of(queue.initiator());
        row(
            table,
            new String[] {"", "", "", "", Printable.of(queue.queue()), by},
            queue.rates(),
            "");
      }
    }
    return table;
  }

  private static void row(Table table, String[] whose, TopRates rates, String recoveries) {
    Object[] cells = new Object[whose.length + 6];
    System.arraycopy(whose, 0, cells, 0, whose.length);
    int at = whose.length;
    cells[at++] = number("%.0f", rates.commandsPerSecond());
    Double bytes = rates.bytesPerSecond();
    cells[at++] = number("%.3f", bytes == null ? null : (Double) (bytes / GIGA));
    cells[at++] = number("%.1f us", rates.latencyMicros());
    cells[at++] = whole(rates.outstanding());
    cells[at++] = whole(rates.retries());
    cells[at] = recoveries;
    table.row(cells);
  }

  private static String number(String format, @Nullable Double value) {
    return value == null ? UNKNOWN : String.format(Locale.ROOT, format, value);
  }

  private static String whole(@Nullable Long value) {
    return value == null ? UNKNOWN : Long.toString(value);
  }
}
