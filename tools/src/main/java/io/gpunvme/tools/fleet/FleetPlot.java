package io.gpunvme.tools.fleet;

import static io.gpunvme.tools.report.Svg.escaped;
import static io.gpunvme.tools.report.Svg.number;
import static io.gpunvme.tools.report.Svg.text;

import io.gpunvme.tools.report.Svg;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.SortedSet;
import java.util.TreeSet;

/**
 * Seconds of a load by the number of machines, a line for each way, as an SVG document. Both axes
 * are logarithmic. It needs no other file and no script, and suits a light and a dark page.
 */
public final class FleetPlot {
  private static final int WIDTH = 860;
  private static final int HEIGHT = 480;
  private static final int LEFT = 70;
  private static final int RIGHT = 690;
  private static final int TOP = 76;
  private static final int BOTTOM = 420;
  private static final int LABEL = 15;
  private static final double TENTH_OF_GIB = (1 << 30) / 10.0;

  private static final String STYLE =
      """
      text{font-family:system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;font-size:12px;\
      fill:#1f2328}
      text.h{font-size:20px;font-weight:600}text.m{text-anchor:middle}text.e{text-anchor:end}
      text.d{fill:#59636e}.page{fill:#fff}.grid{fill:none;stroke:#d1d9e0}
      .least{stroke-dasharray:3 4;stroke-width:1.5}.line{stroke-width:2.5}.line,.least{fill:none}
      .cache{stroke:#8250df}.own{stroke:#1a7f37}.peers{stroke:#0969da}.pool{stroke:#cf222e}
      @media (prefers-color-scheme:dark){
      text{fill:#e6edf3}text.d{fill:#9198a1}.page{fill:#0d1117}.grid{stroke:#3d444d}
      .cache{stroke:#ab7df8}.own{stroke:#3fb950}.peers{stroke:#58a6ff}.pool{stroke:#ff7b72}}
      """;

  /** A number of machines, and what a load takes there. */
  private record Point(long machines, double seconds, double least) {}

  private record Line(Way way, List<Point> points) {}

  private final List<Line> lines = new ArrayList<>();
  private final long most;
  private double low = Double.POSITIVE_INFINITY;
  private double high;

  private FleetPlot(FleetPlan plan) {
    most = Math.max(2, plan.fleet().machines());
    for (FleetPlan.ByWay by : plan.ways()) {
      List<Point> points = new ArrayList<>();
      for (long machines : counts(plan.fleet().machines())) {
        Traffic load =
            LoadRun.plain(plan.fleet().withMachines(machines), plan.parameters(), by.way());
        points.add(new Point(machines, load.seconds(), load.leastSeconds()));
        low = Math.min(low, load.leastSeconds());
        high = Math.max(high, load.seconds());
      }
      lines.add(new Line(by.way(), points));
    }
    low = Math.pow(10, Math.floor(Math.log10(low)));
    high = Math.pow(10, Math.floor(Math.log10(high)) + 1);
  }

  /** Powers of two and of ten, and the number itself. */
  static SortedSet<Long> counts(long machines) {
    SortedSet<Long> counts = new TreeSet<>();
    for (long n = 1; n < machines; n *= 2) {
      counts.add(n);
    }
    for (long n = 1; n < machines; n *= 10) {
      counts.add(n);
    }
    counts.add(machines);
    return counts;
  }

  /** The document, in UTF-8 when written: the plan's ways for 1 to as many machines as it has. */
  public static String of(FleetPlan plan) {
    return new FleetPlot(plan).document(plan.fleet());
  }

  private double x(long machines) {
    return LEFT + (RIGHT - LEFT) * Math.log((double) machines) / Math.log((double) most);
  }

  private double y(double seconds) {
    return BOTTOM - (BOTTOM - TOP) * Math.log(seconds / low) / Math.log(high / low);
  }

  private String document(Fleet fleet) {
    String title =
        "Loading %s GiB, %d GPUs and %d SSDs a machine, placement %s"
            .formatted(
                Parameter.shown(Math.round(fleet.modelBytes() / TENTH_OF_GIB) / 10.0),
                fleet.gpus(),
                fleet.ssds(),
                fleet.placement());
    StringBuilder out = Svg.document(WIDTH, HEIGHT, title, description(), STYLE);
    text(out, LEFT - 46, 36, "h", title);
    text(
        out,
        LEFT - 46,
        57,
        "d",
        "Seconds by the number of machines. Simulated; dotted: the busiest link alone. Nothing"
            + " beyond one machine was measured.");
    axes(out);
    lines.forEach(line -> draw(out, line));
    labels(out);
    return out.append("</svg>\n").toString();
  }

  private String description() {
    StringBuilder all = new StringBuilder();
    for (Line line : lines) {
      all.append(line.way).append(':');
      for (Point point : line.points) {
        all.append(String.format(Locale.ROOT, " %d: %.3g s;", point.machines, point.seconds));
      }
      all.append('\n');
    }
    return all.toString();
  }

  private void axes(StringBuilder out) {
    for (double seconds = low; seconds <= high * 1.001; seconds *= 10) {
      grid(out, LEFT, y(seconds), RIGHT, y(seconds));
      text(out, LEFT - 8, y(seconds) + 4, "e d", Parameter.shown(rounded(seconds)) + " s");
    }
    for (long machines = 1; machines <= most; machines *= 10) {
      grid(out, x(machines), TOP, x(machines), BOTTOM);
      text(out, x(machines), BOTTOM + 18, "m d", Long.toString(machines));
    }
    text(out, (LEFT + RIGHT) / 2.0, BOTTOM + 40, "m d", "machines");
  }

  /** A power of ten, which multiplying has made inexact. */
  private static double rounded(double power) {
    return Double.parseDouble("1e" + Math.round(Math.log10(power)));
  }

  private static void grid(StringBuilder out, double x1, double y1, double x2, double y2) {
    out.append(
        "<path class=\"grid\" d=\"M%s %s L%s %s\"/>\n"
            .formatted(number(x1), number(y1), number(x2), number(y2)));
  }

  private void draw(StringBuilder out, Line line) {
    StringBuilder taken = new StringBuilder();
    StringBuilder least = new StringBuilder();
    for (Point point : line.points) {
      String to = taken.isEmpty() ? "M" : " L";
      taken
          .append(to)
          .append(number(x(point.machines)))
          .append(' ')
          .append(number(y(point.seconds)));
      least.append(to).append(number(x(point.machines))).append(' ').append(number(y(point.least)));
    }
    out.append(
        "<path class=\"least %s\" d=\"%s\"/>\n".formatted(escaped(line.way.toString()), least));
    out.append(
        "<path class=\"line %s\" d=\"%s\"/>\n".formatted(escaped(line.way.toString()), taken));
  }

  /** At the lines' ends, from the top down, none on another. */
  private void labels(StringBuilder out) {
    double next = TOP - LABEL;
    List<Line> fromTop =
        lines.stream()
            .sorted(
                (a, b) -> Double.compare(b.points.getLast().seconds, a.points.getLast().seconds))
            .toList();
    for (Line line : fromTop) {
      Point last = line.points.getLast();
      next = Math.max(next + LABEL, y(last.seconds) + 4);
      text(
          out,
          x(last.machines) + 8,
          next,
          "",
          String.format(Locale.ROOT, "%s %.3g s", line.way, last.seconds));
    }
  }
}
