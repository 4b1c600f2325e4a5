package io.gpunvme.tools.doctor;

import java.util.Locale;

/**
 * One step of a {@link PeerCheck}.
 *
 * @param name {@code register-bar0}
 * @param outcome what became of it
 * @param detail what was seen
 */
public record PeerStep(String name, Outcome outcome, String detail) {
  /** What became of a step. */
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
