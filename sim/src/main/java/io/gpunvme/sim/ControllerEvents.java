package io.gpunvme.sim;

import io.gpunvme.nvme.spec.StatusCode;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/**
 * Asynchronous Event Requests and the events that wait for one (Base 2.0, 5.2).
 *
 * <p>Once an event is reported, further events of its type are kept back until the host reads the
 * log page that goes with it. An event equal to one already waiting is dropped, so that what is
 * kept is bounded. Events are raised by any thread; requests live on worker 0, which completes them
 * in its pass. The monitor of this object is a leaf: nothing else is locked inside it.
 */
final class ControllerEvents {
  /** Event type: error status, log page 01h. */
  static final int TYPE_ERROR = 0;

  /** Event type: SMART / health status. */
  static final int TYPE_SMART = 1;

  /** Event type: notice. */
  static final int TYPE_NOTICE = 2;

  /** Error event: a doorbell of a queue that does not exist was written. */
  static final int ERROR_INVALID_DOORBELL_REGISTER = 0;

  /** Error event: a doorbell was written with a value it cannot have. */
  static final int ERROR_INVALID_DOORBELL_VALUE = 1;

  private static final int TYPES = 8;
  private static final int NOT_MASKED = -1;
  private static final int CAPACITY = 64;

  private final int limit;
  private final Deque<SimCommand> requests = new ArrayDeque<>();
  private final Deque<Integer> waiting = new ArrayDeque<>();
  private final int[] maskedUntilRead = new int[TYPES];

  // Written under the monitor; worker 0 reads it in every pass without one. A value missed now is
  // seen by the next pass.
  private volatile boolean ready;

  /**
   * @param aerl AERL, 0-based
   */
  ControllerEvents(int aerl) {
    limit = aerl + 1;
    Arrays.fill(maskedUntilRead, NOT_MASKED);
  }

  /**
   * Takes an Asynchronous Event Request; called by its executor on worker 0.
   *
   * @return {@link CommandExecutor#HOLD}, or the status if AERL is exceeded
   */
  synchronized int request(SimCommand c) {
    if (requests.size() >= limit) {
      return StatusCode.ASYNC_EVENT_REQUEST_LIMIT_EXCEEDED.dnr();
    }
    requests.add(c);
    update();
    return CommandExecutor.HOLD;
  }

  /**
   * Reports an event now or as soon as the host can take it. Any thread.
   *
   * @param type 0..7
   * @param info Asynchronous Event Information, 0..255
   * @param logPage the log page that tells more, 0..255
   */
  synchronized void raise(int type, int info, int logPage) {
    int event = type | info << 8 | logPage << 16;
    if (waiting.size() < CAPACITY && !waiting.contains(event)) {
      waiting.add(event);
      update();
    }
  }

  /** The host read a log page with RAE (Retain Asynchronous Event) clear. */
  synchronized void logRead(int logPage) {
    for (int type = 0; type < TYPES; type++) {
      if (maskedUntilRead[type] == logPage) {
        maskedUntilRead[type] = NOT_MASKED;
      }
    }
    update();
  }

  /** Whether {@link #take} might return a request. */
  boolean isReady() {
    return ready;
  }

  /** The next request that an event answers, with the event in its dw0; null if there is none. */
  synchronized @Nullable SimCommand take() {
    Integer event = reportable();
    if (event == null || requests.isEmpty()) {
      return null;
    }
    waiting.remove(event);
    maskedUntilRead[event & (TYPES - 1)] = event >>> 16 & 0xFF;
    SimCommand c = requests.remove();
    c.dw0 = event;
    update();
    return c;
  }

  /** Forgets a request that is being aborted. */
  synchronized void forget(SimCommand c) {
    requests.remove(c);
    update();
  }

  /** Forgets requests, events and masks; the requests themselves are the queue's to recycle. */
  synchronized void reset() {
    requests.clear();
    waiting.clear();
    Arrays.fill(maskedUntilRead, NOT_MASKED);
    update();
  }

  private @Nullable Integer reportable() {
    for (Integer event : waiting) {
      if (maskedUntilRead[event & (TYPES - 1)] == NOT_MASKED) {
        return event;
      }
    }
    return null;
  }

  private void update() {
    ready = !requests.isEmpty() && reportable() != null;
  }
}
