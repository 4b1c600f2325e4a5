package io.gpunvme.sim;

import io.gpunvme.nvme.spec.LogId;

/** What happens when the host writes a doorbell wrongly: it is counted and told, nothing else. */
final class DoorbellErrors {
  private final ControllerEvents events;

  DoorbellErrors(ControllerEvents events) {
    this.events = events;
  }

  /**
   * Reports an error.
   *
   * @param info {@link ControllerEvents#ERROR_INVALID_DOORBELL_REGISTER} or {@link
   *     ControllerEvents#ERROR_INVALID_DOORBELL_VALUE}
   */
  void report(SimStats.Stripe stats, int info) {
    stats.add(SimStats.Counter.DOORBELL_ERRORS, 1);
    events.raise(ControllerEvents.TYPE_ERROR, info, LogId.ERROR);
  }
}
