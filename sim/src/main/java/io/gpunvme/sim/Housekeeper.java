package io.gpunvme.sim;

import java.util.function.LongSupplier;

/** What worker 0 does besides serving its queues. Guarded by its lock. */
final class Housekeeper {
  private static final long INTERVAL_NANOS = 10_000_000;

  private final ControllerEvents events;
  private final QueueAdmin queues;
  private final DoorbellErrors doorbellErrors;
  private final FeatureStore features;
  private final ControllerStatus status;
  private long last;

  Housekeeper(
      LongSupplier clock,
      ControllerStatus status,
      ControllerEvents events,
      DoorbellErrors doorbellErrors,
      QueueAdmin queues,
      FeatureStore features) {
    this.events = events;
    this.queues = queues;
    this.doorbellErrors = doorbellErrors;
    this.features = features;
    this.status = status;
    last = clock.getAsLong();
  }

  /** Answers asynchronous event requests, and now and then looks around. Returns how many. */
  int serve(Worker worker) {
    int answered = 0;
    while (events.isReady()) {
      SimCommand c = events.take();
      if (c == null) {
        break;
      }
      worker.pipeline().finish(c, 0);
      answered++;
    }
    if (worker.now() - last >= INTERVAL_NANOS) {
      last = worker.now();
      lookAround(worker);
    }
    return answered;
  }

  private void lookAround(Worker worker) {
    int strays = queues.strayDoorbells();
    for (int i = 0; i < strays; i++) {
      doorbellErrors.report(worker.stats(), ControllerEvents.ERROR_INVALID_DOORBELL_REGISTER);
    }
    if (features.keepAliveExpired(worker.now())) {
      status.fatal("the keep alive timer expired");
    }
  }
}
