package io.gpunvme.tools.report;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/** Results that are only named and measured: by unit, in the order of the file. */
final class OtherSection {
  private static final Pattern EMBEDDED = Pattern.compile("(?:ceiling|stream|random)\\..+");
  private static final int MOST_ROWS = 40;

  private OtherSection() {}

  /** Whether it is about reads from the controller that we bring along. */
  static boolean isEmbedded(Result result) {
    return EMBEDDED.matcher(result.id()).matches();
  }

  static Section of(String title, String run, List<Result> results) {
    Map<String, List<Result>> units = new LinkedHashMap<>();
    results.forEach(r -> units.computeIfAbsent(r.unit(), unit -> new ArrayList<>()).add(r));
    List<Block> blocks = new ArrayList<>();
    units.forEach((unit, all) -> blocks.add(block(unit, all)));
    return new Section(title, run, blocks);
  }

  private static Block block(String unit, List<Result> results) {
    List<Result> plotted = results.stream().filter(Result::verified).limit(MOST_ROWS).toList();
    List<Chart> charts =
        plotted.isEmpty()
            ? List.of()
            : List.of(
                new Chart(
                    Chart.Kind.ROWS,
                    unit,
                    "",
                    plotted.stream().map(r -> Chart.Place.named(r.id())).toList(),
                    unit,
                    false,
                    List.of(
                        new Chart.Series(
                            "median",
                            "0",
                            false,
                            plotted.stream().map(Chart.Point::of).toList()))));
    return new Block(
        unit,
        results.stream().anyMatch(r -> r.limit() != null) ? Block.MARKS : "",
        charts,
        ReportTable.of(results));
  }
}
