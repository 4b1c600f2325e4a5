package io.gpunvme.storage;

import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Verdict;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The path that a storage uses, and the reasons against the others.
 *
 * @param asked the path that the address asks for, or {@code auto}
 * @param reason why this path is used
 * @param verdicts the verdict of each path
 * @param modes how the opened paths work
 * @param numa for each SSD, file and GPU by its name: the NUMA node that its memory and the threads
 *     that serve it are placed on, or why they are not
 */
public record Explanation(
    String asked,
    String reason,
    List<Verdict> verdicts,
    Map<PathKind, String> modes,
    Map<String, String> numa) {
  /** Copies. */
  public Explanation {
    verdicts = List.copyOf(verdicts);
    modes = Map.copyOf(modes);
    numa = Map.copyOf(numa);
  }

  /** Of a storage. */
  static Explanation of(
      StorageAddress address,
      List<Verdict> verdicts,
      Map<PathKind, String> modes,
      Map<String, String> numa) {
    PathKind asked = address.path();
    String reason =
        asked != null
            ? "the address asks for it"
            : address.file() == null
                ? "this process drives the controller with its own commands"
                : "for each request, the possible path that expects to be fastest";
    return new Explanation(
        asked == null ? "auto" : asked.toString(), reason, verdicts, modes, numa);
  }

  /** A line each, for people. */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder();
    text.append("path ").append(asked).append(": ").append(reason).append('\n');
    for (Verdict v : verdicts) {
      text.append(
          "  %-6s %-7s %s%n"
              .formatted(
                  v.kind(), v.automatic() ? "yes" : v.possible() ? "by name" : "no", v.reason()));
      if (!v.fix().isEmpty()) {
        text.append("                 fix: ").append(v.fix()).append('\n');
      }
    }
    new TreeMap<>(modes)
        .forEach(
            (kind, mode) ->
                text.append("  used: ").append(kind).append(", ").append(mode).append('\n'));
    new TreeMap<>(numa)
        .forEach(
            (name, node) ->
                text.append("  placed: ").append(name).append(", ").append(node).append('\n'));
    return text.toString();
  }
}
