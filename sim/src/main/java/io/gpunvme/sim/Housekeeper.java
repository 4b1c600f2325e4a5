package io.gpunvme.sim;

/** What worker 0 does besides serving its queues. Guarded by its lock. */
final class Housekeeper {
  private static final long INTERVAL_NANOS = 10_000_000;

  private final SimulatedController controller;
  private long last;

  Housekeeper(SimulatedController controller) {
    this.controller = controller;
    last = controller.now();
  }

  /** Answers asynchronous event requests, and now and then looks around. Returns how many. */
  int serve(Worker worker) {
    int answered = 0;
    ControllerEvents events = controller.asyncEvents();
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
    int strays = controller.queues().strayDoorbells();
    for (int i = 0; i < strays; i++) {
      controller
          .doorbellErrors()
          .report(worker.stats(), ControllerEvents.ERROR_INVALID_DOORBELL_REGISTER);
    }
    if (controller.features().keepAliveExpired(worker.now())) {
      controller.status().fatal("the keep alive timer expired");
    }
  }
}
