package io.gpunvme.tools.report;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;

/** The runs on one machine, newest first. What is shown together comes from one run. */
final class MachineReport {
  private static final Comparator<ResultFile> NEWEST_FIRST =
      Comparator.comparing(ResultFile::date).thenComparing(f -> f.file().toString()).reversed();
  private static final int MOST_TILES = 6;
  private static final int MOST_RUNS = 6;

  /** What says most about a machine, the most telling first. */
  private static final List<String> TELLING =
      List.of(
          "paths.direct.rand4k.warm",
          "paths.auto.seq.warm",
          "paths.pinned.seq.cold",
          "paths.direct.seq.warm",
          "paths.cufile.seq.warm",
          "paths.auto.seq.cold",
          "queue.host.exclusive.qp128",
          "queue.vram.exclusive.qp128",
          "queue.host.shared.qp64",
          "random.4k.host",
          "stream.1m.vram",
          "queue.qd1",
          "cpu.copy.4k",
          "queue.cpu.4k.thread",
          "start.help",
          "start.identify");

  private final List<ResultFile> runs;

  private MachineReport(List<ResultFile> runs) {
    this.runs = runs.stream().sorted(NEWEST_FIRST).toList();
  }

  /**
   * A different GPU, driver or kernel is another machine. Those with a GPU are first, and of them
   * the one with the newest run.
   */
  static List<MachineReport> of(List<ResultFile> files) {
    record Key(String folder, Map<String, String> machine) {}
    Map<Key, List<ResultFile>> machines = new LinkedHashMap<>();
    for (ResultFile file : files) {
      machines
          .computeIfAbsent(new Key(file.folder(), file.machine()), key -> new ArrayList<>())
          .add(file);
    }
    return machines.values().stream()
        .map(MachineReport::new)
        .sorted(
            Comparator.comparing((MachineReport m) -> !m.hasGpu())
                .thenComparing(m -> m.runs.getFirst(), NEWEST_FIRST))
        .toList();
  }

  private boolean hasGpu() {
    String gpu = machine().get("gpu");
    return gpu != null && !gpu.isEmpty() && !gpu.equals("none");
  }

  String name() {
    return runs.getFirst().folder();
  }

  Map<String, String> machine() {
    return runs.getFirst().machine();
  }

  List<Section> sections() {
    Predicate<Result> known = r -> PathSection.takes(r) || QueueSection.takes(r);
    Predicate<Result> embedded = r -> !known.test(r) && OtherSection.isEmbedded(r);
    List<Section> sections = new ArrayList<>();
    newest(PathSection::takes)
        .ifPresent(f -> sections.add(PathSection.of(f.run(), only(f, PathSection::takes))));
    newest(QueueSection::takes)
        .ifPresent(f -> sections.add(QueueSection.of(f.run(), only(f, QueueSection::takes))));
    newest(embedded)
        .ifPresent(
            f ->
                sections.add(
                    OtherSection.of(
                        "Embedded controller and its limits", f.run(), only(f, embedded))));
    Predicate<Result> rest = known.or(embedded).negate();
    newest(rest)
        .ifPresent(f -> sections.add(OtherSection.of("Other results", f.run(), only(f, rest))));
    return sections;
  }

  private Optional<ResultFile> newest(Predicate<Result> which) {
    return runs.stream().filter(f -> f.results().stream().anyMatch(which)).findFirst();
  }

  private static List<Result> only(ResultFile file, Predicate<Result> which) {
    return file.results().stream().filter(which).toList();
  }

  /** A few numbers for readers who read no further. */
  List<Result> tiles() {
    Map<String, Result> newest = new LinkedHashMap<>();
    for (ResultFile run : runs) {
      run.results().stream().filter(Result::verified).forEach(r -> newest.putIfAbsent(r.id(), r));
    }
    return TELLING.stream().filter(newest::containsKey).map(newest::get).limit(MOST_TILES).toList();
  }

  /** Every id of every run, and what the latest runs measured. */
  ReportTable history() {
    List<ResultFile> shown = runs.stream().limit(MOST_RUNS).toList();
    List<String> head = new ArrayList<>(List.of("Result"));
    shown.forEach(f -> head.add(f.run()));
    ReportTable table = new ReportTable("Every result, by run", head.toArray(String[]::new));
    Set<String> ids = new LinkedHashSet<>();
    List<Map<String, Result>> columns = new ArrayList<>();
    for (ResultFile run : runs) {
      Map<String, Result> results = new LinkedHashMap<>();
      run.results().forEach(r -> results.putIfAbsent(r.id(), r));
      ids.addAll(results.keySet());
      columns.add(results);
    }
    for (String id : ids) {
      List<Html> cells = new ArrayList<>();
      cells.add(Html.code(id));
      for (int run = 0; run < shown.size(); run++) {
        Result result = columns.get(run).get(id);
        cells.add(
            result == null ? Html.EMPTY : Html.text(Numbers.of(result.median(), result.unit())));
      }
      table.row(cells.toArray(Html[]::new));
    }
    return table;
  }

  int runCount() {
    return runs.size();
  }
}
