package io.gpunvme.tools.doctor;

import java.util.Set;

/**
 * One thing about this machine.
 *
 * @param id stable, {@code iommu-off}
 * @param severity how much it matters
 * @param subject what it is about: a PCI address, or a word such as {@code kernel}
 * @param cause the observation
 * @param effect its consequence
 * @param fix the command or the step that changes it; empty if there is nothing to do
 * @param blocks the ways that it blocks
 */
public record Finding(
    String id,
    Severity severity,
    String subject,
    String cause,
    String effect,
    String fix,
    Set<Way> blocks) {
  /** Copies the set. */
  public Finding {
    blocks = Set.copyOf(blocks);
  }

  static Finding ok(String id, String subject, String cause) {
    return new Finding(id, Severity.OK, subject, cause, "", "", Set.of());
  }

  static Finding note(String id, String subject, String cause, String effect, String fix) {
    return new Finding(id, Severity.NOTE, subject, cause, effect, fix, Set.of());
  }

  static Finding problem(String id, String subject, String cause, String effect, String fix) {
    return new Finding(id, Severity.PROBLEM, subject, cause, effect, fix, Set.of());
  }

  /** The same, blocking some ways. */
  Finding blocking(Set<Way> ways) {
    return new Finding(id, severity, subject, cause, effect, fix, ways);
  }
}
