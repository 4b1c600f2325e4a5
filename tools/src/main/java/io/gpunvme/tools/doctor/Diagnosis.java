package io.gpunvme.tools.doctor;

import java.util.List;

/**
 * Everything found.
 *
 * @param findings about this machine, by subject
 */
public record Diagnosis(List<Finding> findings) {
  /** Copies the list. */
  public Diagnosis {
    findings = List.copyOf(findings);
  }

  /** What stands in a way; nothing if it is open as far as looking can tell. */
  public List<Finding> obstacles(Way way) {
    return findings.stream().filter(f -> f.blocks().contains(way)).toList();
  }

  /** How many findings matter so much. */
  public long count(Severity severity) {
    return findings.stream().filter(f -> f.severity() == severity).count();
  }
}
