package io.gpunvme.tools.report;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Queue pairs that a GPU drives: {@code queue.<host|vram>.<kind>.qp<N>[.<way of calling>]}. */
final class QueueSection {
  private static final Pattern ID =
      Pattern.compile(
          "queue\\.(host|vram)\\.(exclusive|shared|block)\\.qp(\\d{1,5})(?:\\.([\\w.-]{1,40}))?");
  private static final Pattern ALONE = Pattern.compile("queue\\.qd1(?:\\.[\\w.-]{1,40})?");
  private static final List<String> KINDS = List.of("exclusive", "block", "shared");
  private static final List<String> PLACES = List.of("host", "vram");
  private static final String ORDINARY = "all lanes";

  private QueueSection() {}

  private record Queue(Result result, String place, String kind, int pairs, String way) {
    static Optional<Queue> of(Result result) {
      Matcher id = ID.matcher(result.id());
      if (!id.matches() || !result.unit().equals("commands/s")) {
        return Optional.empty();
      }
      String way = id.group(4) == null ? ORDINARY : id.group(4);
      int pairs = Integer.parseInt(id.group(3));
      return pairs == 0
          ? Optional.empty()
          : Optional.of(new Queue(result, id.group(1), id.group(2), pairs, way));
    }

    boolean ordinary() {
      return way.equals(ORDINARY);
    }
  }

  static boolean takes(Result result) {
    return Queue.of(result).isPresent() || alone(result);
  }

  /** Whether it counts commands that a responder answers without reading or writing. */
  static boolean movesNoData(Result result) {
    return Queue.of(result).isPresent();
  }

  private static boolean alone(Result result) {
    return ALONE.matcher(result.id()).matches() && result.unit().equals("ns");
  }

  /** Of results that it takes, at least one. */
  static Section of(String run, List<Result> results) {
    List<Queue> queues = results.stream().flatMap(r -> Queue.of(r).stream()).toList();
    List<Block> blocks = new ArrayList<>();
    scaling(blocks, queues.stream().filter(Queue::ordinary).toList());
    ways(blocks, queues);
    alone(blocks, results.stream().filter(QueueSection::alone).toList());
    return new Section("Queue pairs that a GPU drives", run, blocks);
  }

  private static List<Queue> plotted(List<Queue> queues) {
    return queues.stream().filter(q -> q.result().verified()).toList();
  }

  private static void scaling(List<Block> blocks, List<Queue> queues) {
    if (queues.isEmpty()) {
      return;
    }
    List<Chart> charts = new ArrayList<>();
    for (String place : PLACES) {
      List<Queue> here = plotted(queues).stream().filter(q -> q.place().equals(place)).toList();
      if (!here.isEmpty()) {
        charts.add(scaling(place, here));
      }
    }
    blocks.add(
        new Block(
            "Commands per second by number of queue pairs",
            "Commands built, rung and completed by a kernel; the responder moves no data."
                + " exclusive: a warp has its own queue pair. block: four warps share one. shared:"
                + " any thread uses any pair.",
            charts,
            ReportTable.of(queues.stream().map(Queue::result).toList())));
  }

  private static Chart scaling(String place, List<Queue> queues) {
    TreeSet<Integer> counts = new TreeSet<>();
    queues.forEach(q -> counts.add(q.pairs()));
    List<Chart.Series> series = new ArrayList<>();
    for (int kind = 0; kind < KINDS.size(); kind++) {
      String name = KINDS.get(kind);
      Map<Integer, Result> own = new LinkedHashMap<>();
      queues.stream()
          .filter(q -> q.kind().equals(name))
          .forEach(q -> own.put(q.pairs(), q.result()));
      if (!own.isEmpty()) {
        series.add(new Chart.Series(name, String.valueOf(kind), false, points(counts, own)));
      }
    }
    return new Chart(
        Chart.Kind.LINE,
        place.equals("host") ? "Queues in host memory" : "Queues in GPU memory",
        "queue pairs",
        counts.stream().map(n -> new Chart.Place(String.valueOf(n), n, null)).toList(),
        "commands/s",
        true,
        series);
  }

  private static <K> List<Chart.@Nullable Point> points(Iterable<K> places, Map<K, Result> by) {
    List<Chart.@Nullable Point> points = new ArrayList<>();
    for (K place : places) {
      Result result = by.get(place);
      points.add(result == null ? null : Chart.Point.alone(result));
    }
    return points;
  }

  // ---- other ways to call

  private static void ways(List<Block> blocks, List<Queue> queues) {
    List<Queue> other = queues.stream().filter(q -> !q.ordinary()).toList();
    if (other.isEmpty()) {
      return;
    }
    TreeSet<String> ways = new TreeSet<>(QueueSection::byNumber);
    plotted(other).forEach(q -> ways.add(q.way()));
    List<String> places = new ArrayList<>();
    places.add(ORDINARY);
    places.addAll(ways);
    Map<String, Map<String, Result>> lines = new LinkedHashMap<>();
    for (Queue q : plotted(queues)) {
      String line = line(q);
      boolean compared = plotted(other).stream().anyMatch(o -> line(o).equals(line));
      if (compared) {
        lines.computeIfAbsent(line, name -> new LinkedHashMap<>()).put(q.way(), q.result());
      }
    }
    List<Chart.Series> series = new ArrayList<>();
    lines.forEach(
        (name, own) ->
            series.add(
                new Chart.Series(name, String.valueOf(series.size()), false, points(places, own))));
    List<Chart> charts =
        series.isEmpty()
            ? List.of()
            : List.of(
                new Chart(
                    Chart.Kind.DOTS,
                    "Ways of calling",
                    "",
                    places.stream().map(Chart.Place::named).toList(),
                    "commands/s",
                    true,
                    series));
    blocks.add(
        new Block(
            "Other ways of calling",
            "The same queues when only some lanes of a warp call, when they call from two places in"
                + " the code, or each at a time of its own.",
            charts,
            ReportTable.of(other.stream().map(Queue::result).toList())));
  }

  private static String line(Queue q) {
    return q.place() + ", " + q.kind() + ", " + q.pairs() + (q.pairs() == 1 ? " pair" : " pairs");
  }

  /** {@code lanes4} before {@code lanes16}. */
  private static int byNumber(String a, String b) {
    Matcher first = TRAILING.matcher(a);
    Matcher second = TRAILING.matcher(b);
    if (first.matches() && second.matches() && first.group(1).equals(second.group(1))) {
      return Integer.compare(Integer.parseInt(first.group(2)), Integer.parseInt(second.group(2)));
    }
    return a.compareTo(b);
  }

  private static final Pattern TRAILING = Pattern.compile("(.*?)(\\d{1,6})");

  // ---- one command at a time

  private static void alone(List<Block> blocks, List<Result> results) {
    if (results.isEmpty()) {
      return;
    }
    List<LatencyPlot.Line> lines = new ArrayList<>();
    for (Result result : results) {
      if (result.verified() && !result.latency().isEmpty()) {
        lines.add(new LatencyPlot.Line(result.id(), String.valueOf(lines.size()), result));
      }
    }
    blocks.add(
        new Block(
            "One command at a time",
            "From building the command to its status, on the GPU's clock.",
            LatencyPlot.of("Latency of a lone command", lines),
            ReportTable.of(results)));
  }
}
