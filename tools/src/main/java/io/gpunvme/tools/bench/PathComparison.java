package io.gpunvme.tools.bench;

import java.util.List;
import java.util.Map;

/** Results of paths, each beside its limit and the best other path that did the same. */
final class PathComparison {
  private final Map<String, Measurement> limits;
  private final List<Measurement> results;

  /**
   * @param limits by id
   */
  PathComparison(Map<String, Measurement> limits, List<Measurement> results) {
    this.limits = limits;
    this.results = results;
  }

  List<Measurement> compared() {
    return results.stream().map(m -> besideOthers(limited(m))).toList();
  }

  /** One that brought its limit along keeps it. */
  private Measurement limited(Measurement m) {
    PathCase like = new PathCase("", m.unit().equals("commands/s"), m.id().contains(".warm"), 0);
    Measurement limit = limits.get(like.limit());
    return limit == null || m.limit() != null ? m : m.limitedBy(limit);
  }

  private Measurement besideOthers(Measurement m) {
    Measurement best = null;
    for (Measurement other : results) {
      boolean same = rest(other.id()).equals(rest(m.id())) && !other.id().equals(m.id());
      // What auto chose is no other path.
      if (same && !isAuto(other) && !(isAuto(m) && other.id().contains(chosen(m)))) {
        best = best == null || other.median() > best.median() ? other : best;
      }
    }
    return best == null ? m : m.besides(best);
  }

  private static boolean isAuto(Measurement m) {
    return m.id().startsWith("paths.auto.");
  }

  private static String chosen(Measurement m) {
    return "paths." + m.conditions().get("path") + ".";
  }

  /** An id without its path. */
  private static String rest(String id) {
    int first = id.indexOf('.') + 1;
    return id.substring(id.indexOf('.', first));
  }
}
