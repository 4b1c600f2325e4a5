package io.gpunvme.tools.doctor;

import java.util.Locale;

/**
 * One step of a {@link PeerCheck}.
 *
 * @param name {@code register-bar0}
 * @param outcome its outcome
 * @param detail the observation
 */
public record PeerStep(String name, Outcome outcome, String detail) {
  /** The outcome of a step. */
  public enum Outcome {
    PASSED,
    FAILED,
    /** Not asked for, or pointless after what came before. */
    SKIPPED;

    /** As it is printed. */
    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }
}
