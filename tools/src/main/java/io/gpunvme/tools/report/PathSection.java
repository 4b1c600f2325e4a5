package io.gpunvme.tools.report;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** The storage paths side by side. */
final class PathSection {
  /** Above this ratio of the largest to the smallest, bars would hide the small ones. */
  private static final double WIDE = 20;

  private final List<PathResult> all;

  /** Only what can be plotted and compared. */
  private final List<PathResult> good;

  private PathSection(List<PathResult> all) {
    this.all = all;
    this.good = all.stream().filter(r -> r.result().verified()).toList();
  }

  static boolean takes(Result result) {
    return PathResult.of(result).isPresent();
  }

  /** Of results that it takes, at least one. */
  static Section of(String run, List<Result> results) {
    List<PathResult> paths = results.stream().flatMap(r -> PathResult.of(r).stream()).toList();
    return new Section("Storage paths", run, new PathSection(paths).blocks());
  }

  private List<Block> blocks() {
    List<Block> blocks = new ArrayList<>();
    List<Result> singles = results(r -> !r.sweep());
    if (!singles.isEmpty()) {
      blocks.add(
          new Block(
              "Throughput by path",
              Block.MARKS,
              forEachKind(this::byPath),
              ReportTable.of(singles)));
    }
    List<Result> sweeps = results(PathResult::sweep);
    if (!sweeps.isEmpty()) {
      blocks.add(
          new Block(
              "Throughput by block size",
              "Each point is measured by itself; whiskers: slowest and fastest sample.",
              forEachKind(this::bySize),
              ReportTable.of(sweeps)));
    }
    latency(blocks);
    cost(blocks);
    return blocks;
  }

  private List<Result> results(Predicate<PathResult> which) {
    return all.stream().filter(which).map(PathResult::result).toList();
  }

  // ---- throughput

  private List<Chart> byPath(boolean random, boolean warm) {
    return bars(
        title(random, warm),
        random ? "commands/s" : "GB/s",
        r -> r.random() == random && r.warm() == warm && !r.sweep(),
        r -> Chart.Point.of(r.result()));
  }

  /** A bar a path, cold beside warm. */
  private List<Chart> bars(
      String title,
      String unit,
      Predicate<PathResult> these,
      Function<PathResult, Chart.@Nullable Point> value) {
    List<PathResult> shown =
        good.stream().filter(these).filter(r -> value.apply(r) != null).toList();
    if (shown.isEmpty()) {
      return List.of();
    }
    List<String> paths =
        PathResult.PATHS.stream()
            .filter(p -> shown.stream().anyMatch(r -> r.path().equals(p)))
            .toList();
    List<Chart.Series> series = new ArrayList<>();
    for (boolean warm : new boolean[] {false, true}) {
      List<Chart.@Nullable Point> points = new ArrayList<>();
      for (String path : paths) {
        points.add(
            shown.stream()
                .filter(r -> r.warm() == warm && r.path().equals(path))
                .findFirst()
                .map(value)
                .orElse(null));
      }
      if (points.stream().anyMatch(p -> p != null)) {
        series.add(new Chart.Series(warm ? "warm" : "cold", "ink", warm, points));
      }
    }
    boolean wide = wide(series);
    return List.of(
        new Chart(
            wide ? Chart.Kind.DOTS : Chart.Kind.BAR,
            title,
            "",
            paths.stream().map(p -> new Chart.Place(p, Double.NaN, p)).toList(),
            unit,
            wide,
            series));
  }

  private static boolean wide(List<Chart.Series> series) {
    double[] values =
        series.stream()
            .flatMap(s -> s.points().stream())
            .filter(p -> p != null)
            .mapToDouble(Chart.Point::value)
            .sorted()
            .toArray();
    return values[0] > 0 && values[values.length - 1] / values[0] > WIDE;
  }

  /** One plot for each of sequential and random, cold and warm. */
  private static List<Chart> forEachKind(KindOfPlot plot) {
    List<Chart> charts = new ArrayList<>();
    for (boolean random : new boolean[] {false, true}) {
      for (boolean warm : new boolean[] {false, true}) {
        charts.addAll(plot.of(random, warm));
      }
    }
    return charts;
  }

  /** Draws what was read so. */
  private interface KindOfPlot {
    List<Chart> of(boolean random, boolean warm);
  }

  private static String title(boolean random, boolean warm) {
    return (random ? "Random reads, " : "Sequential reads, ") + (warm ? "warm" : "cold");
  }

  private List<Chart> bySize(boolean random, boolean warm) {
    List<PathResult> alike =
        good.stream().filter(r -> r.random() == random && r.warm() == warm).toList();
    Set<String> swept =
        alike.stream().filter(PathResult::sweep).map(PathResult::path).collect(Collectors.toSet());
    if (swept.isEmpty()) {
      return List.of();
    }
    // A path's single result is one more point of its line, unless the sweep has that size too.
    List<PathResult> shown =
        alike.stream()
            .filter(r -> swept.contains(r.path()) && r.blockBytes() > 0)
            .sorted(Comparator.comparing(r -> !r.sweep()))
            .toList();
    TreeSet<Long> sizes = new TreeSet<>();
    shown.forEach(r -> sizes.add(r.blockBytes()));
    List<Chart.Series> series = new ArrayList<>();
    for (String path : PathResult.PATHS) {
      List<PathResult> own = shown.stream().filter(r -> r.path().equals(path)).toList();
      if (!own.isEmpty()) {
        List<Chart.@Nullable Point> points = new ArrayList<>();
        for (long size : sizes) {
          points.add(
              own.stream()
                  .filter(r -> r.blockBytes() == size)
                  .findFirst()
                  .map(r -> Chart.Point.of(r.result()))
                  .orElse(null));
        }
        series.add(new Chart.Series(path, path, false, points));
      }
    }
    return List.of(
        new Chart(
            Chart.Kind.LINE,
            title(random, warm),
            "block size",
            sizes.stream().map(s -> new Chart.Place(Numbers.bytes(s), s, null)).toList(),
            random ? "commands/s" : "GB/s",
            wide(series),
            series));
  }

  // ---- latency and cost

  private void latency(List<Block> blocks) {
    List<PathResult> timed =
        all.stream().filter(r -> !r.sweep() && !r.result().latency().isEmpty()).toList();
    if (!timed.isEmpty()) {
      blocks.add(
          new Block(
              "Latency",
              "From the request to its data, on a logarithmic axis.",
              forEachKind((random, warm) -> latency(timed, random, warm)),
              LatencyPlot.table(timed.stream().map(PathResult::result).toList())));
    }
  }

  private static List<Chart> latency(List<PathResult> timed, boolean random, boolean warm) {
    List<LatencyPlot.Line> lines = new ArrayList<>();
    for (String path : PathResult.PATHS) {
      timed.stream()
          .filter(r -> r.random() == random && r.warm() == warm && r.path().equals(path))
          .filter(r -> r.result().verified())
          .forEach(r -> lines.add(new LatencyPlot.Line(path, path, r.result())));
    }
    return LatencyPlot.of(title(random, warm), lines);
  }

  private void cost(List<Block> blocks) {
    List<Chart> charts = new ArrayList<>();
    for (boolean random : new boolean[] {false, true}) {
      String what = random ? "random reads" : "sequential reads";
      charts.addAll(costs("CPU time, " + what, "s/GB", "cpu_seconds_per_gb", random));
      charts.addAll(costs("GPU multiprocessors, " + what, "SMs", "sms", random));
    }
    ReportTable table =
        new ReportTable("Numbers", "Result", "CPU seconds per GB", "SMs", "Threads", "Queues");
    for (PathResult path : all) {
      Result r = path.result();
      boolean costs = r.number("cpu_seconds_per_gb").isPresent() || r.number("sms").isPresent();
      if (costs) {
        table.row(
            ReportTable.id(r),
            number(r, "cpu_seconds_per_gb"),
            number(r, "sms"),
            number(r, "threads"),
            number(r, "queue_pairs"));
      }
    }
    if (!table.isEmpty()) {
      blocks.add(
          new Block(
              "What it costs",
              "CPU seconds for each GB, and multiprocessors of the GPU in use. The first table has"
                  + " the conditions.",
              charts,
              table));
    }
  }

  /** Nothing where nobody has such costs: an empty plot says no more. */
  private List<Chart> costs(String title, String unit, String condition, boolean random) {
    Predicate<PathResult> these = r -> r.random() == random && !r.sweep();
    if (good.stream().filter(these).allMatch(r -> r.result().number(condition).orElse(0) == 0)) {
      return List.of();
    }
    return bars(
        title,
        unit,
        these,
        r -> {
          var value = r.result().number(condition);
          return value.isPresent() ? Chart.Point.of(value.getAsDouble()) : null;
        });
  }

  private static Html number(Result result, String condition) {
    var value = result.number(condition);
    return value.isPresent() ? Html.text(Numbers.plain(value.getAsDouble())) : Html.EMPTY;
  }
}
