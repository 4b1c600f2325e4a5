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

  /** The findings that block a way; empty if it looks open. */
  public List<Finding> obstacles(Way way) {
    return findings.stream().filter(f -> f.blocks().contains(way)).toList();
  }

  /** The number of findings of this severity. */
  public long count(Severity severity) {
    return findings.stream().filter(f -> f.severity() == severity).count();
  }
}
