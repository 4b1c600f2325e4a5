package io.gpunvme.tools.report;

import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Latency percentiles, each line a result. */
final class LatencyPlot {
  private LatencyPlot() {}

  /** A result with the name and colour of its line. */
  record Line(String name, String color, Result result) {}

  /** The plot of these lines; none of none. */
  static List<Chart> of(String title, List<Line> lines) {
    if (lines.isEmpty()) {
      return List.of();
    }
    SortedMap<Double, String> ranks = ranks(lines.stream().map(Line::result).toList());
    List<Chart.Series> series = new ArrayList<>();
    for (Line line : lines) {
      List<Chart.@Nullable Point> points = new ArrayList<>();
      for (double rank : ranks.keySet()) {
        points.add(
            at(line.result(), rank).map(p -> Chart.Point.of(p.nanos())).findFirst().orElse(null));
      }
      series.add(new Chart.Series(line.name(), line.color(), false, points));
    }
    return List.of(
        new Chart(
            Chart.Kind.LINE,
            title,
            "percentile",
            ranks.values().stream().map(Chart.Place::named).toList(),
            "ns",
            true,
            series));
  }

  /** Every percentile of every result. */
  static ReportTable table(List<Result> results) {
    SortedMap<Double, String> ranks = ranks(results);
    ReportTable table =
        new ReportTable(
            "Numbers",
            Stream.concat(Stream.of("Result"), ranks.values().stream()).toArray(String[]::new));
    for (Result result : results) {
      List<Html> cells = new ArrayList<>();
      cells.add(ReportTable.id(result));
      for (double rank : ranks.keySet()) {
        cells.add(
            at(result, rank)
                .map(p -> Html.text(Numbers.nanos(p.nanos())))
                .findFirst()
                .orElse(Html.EMPTY));
      }
      table.row(cells.toArray(Html[]::new));
    }
    return table;
  }

  private static SortedMap<Double, String> ranks(List<Result> results) {
    SortedMap<Double, String> ranks = new TreeMap<>();
    results.forEach(r -> r.latency().forEach(p -> ranks.put(p.rank(), p.name())));
    return ranks;
  }

  private static Stream<Result.Percentile> at(Result result, double rank) {
    return result.latency().stream().filter(p -> p.rank() == rank);
  }
}
