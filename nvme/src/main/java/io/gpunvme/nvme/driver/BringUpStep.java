package io.gpunvme.nvme.driver;

/**
 * One finished state of bringing a controller up.
 *
 * @param state the state, e.g. {@code WAIT_READY}
 * @param nanos how long it took
 * @param cc CC when it ended
 * @param csts CSTS when it ended; all ones if the device is gone
 * @param note the finding or decision, one line
 */
public record BringUpStep(String state, long nanos, int cc, int csts, String note) {
  /** One line for people. */
  @Override
  public String toString() {
    return "%-18s %10.3f ms  CC %08X  CSTS %08X  %s".formatted(state, nanos / 1e6, cc, csts, note);
  }
}
