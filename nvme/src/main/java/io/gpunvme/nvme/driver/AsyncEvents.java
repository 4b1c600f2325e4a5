package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.spec.AsyncEvent;
import io.gpunvme.nvme.spec.ChangedNamespaceList;
import io.gpunvme.nvme.spec.ErrorLogEntry;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.LogId;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;

/**
 * Asynchronous events (Base 2.0, 5.2): keeps requests outstanding and hands events to listeners.
 *
 * <p>Any poll of the admin queue takes in an event, and {@link #poll} delivers it on the thread
 * that calls it, without a lock. Before that it reads the event's log page, which allows the same
 * event to happen again. Safe for all threads.
 */
public final class AsyncEvents {
  /** More are of no use: the controller masks an event until its log page was read. */
  private static final int MAX_REQUESTS = 4;

  /** All critical warnings of the SMART log (Base 2.0, 5.27.1.8). */
  private static final int SMART_WARNINGS = 0x1F;

  private static final int LOG_BYTES = 512;

  /** Guards itself and the two counts. */
  private final Queue<AsyncEvent> received = new ArrayDeque<>();

  private int wanted;
  private int outstanding;
  private final List<Consumer<AsyncEvent>> listeners = new CopyOnWriteArrayList<>();

  AsyncEvents() {}

  /** Adds a listener; an exception from it reaches the caller of {@link #poll}. */
  public void listen(Consumer<AsyncEvent> listener) {
    listeners.add(listener);
  }

  /** Removes a listener. */
  public void remove(Consumer<AsyncEvent> listener) {
    listeners.remove(listener);
  }

  /** Called by the admin queue with its lock held. */
  void receive(int dw0) {
    synchronized (received) {
      received.add(new AsyncEvent(dw0));
      outstanding--;
    }
  }

  /**
   * After every bring-up: says which events are wanted and sends the requests; one slot of the
   * admin queue stays free for commands.
   *
   * @return a note for the bring-up report
   */
  String enable(AdminQueue admin, IdentifyController identify) {
    int notices =
        identify.oaes()
            & (IdentifyController.OAES_NAMESPACE_ATTRIBUTES
                | IdentifyController.OAES_FIRMWARE_ACTIVATION);
    new ControllerFeatures(admin).set(FeatureId.ASYNC_EVENT_CONFIG, SMART_WARNINGS | notices);
    int requests = Math.min(Math.min(identify.aerl() + 1, MAX_REQUESTS), admin.queue().depth() - 1);
    synchronized (received) {
      wanted = requests;
      outstanding = 0;
    }
    request(admin);
    return "%d requests, notices %Xh".formatted(requests, notices);
  }

  /**
   * Takes in what has happened, reads each event's log page, requests the next event and tells the
   * listeners.
   *
   * @return the events, oldest first
   */
  List<AsyncEvent> poll(AdminQueue admin) {
    admin.poll();
    List<AsyncEvent> events = new ArrayList<>();
    synchronized (received) {
      for (AsyncEvent e = received.poll(); e != null; e = received.poll()) {
        events.add(e);
      }
    }
    for (AsyncEvent event : events) {
      acknowledge(admin, event);
    }
    request(admin);
    for (AsyncEvent event : events) {
      listeners.forEach(listener -> listener.accept(event));
    }
    return events;
  }

  /**
   * Requests outstanding before a reset are gone with it, hence the counting; one that could not be
   * sent is left to the next poll.
   */
  private void request(AdminQueue admin) {
    while (true) {
      synchronized (received) {
        if (outstanding >= wanted) {
          return;
        }
        outstanding++;
      }
      boolean sent = false;
      try {
        sent = admin.requestEvent();
      } finally {
        if (!sent) {
          synchronized (received) {
            outstanding--;
          }
        }
      }
      if (!sent) {
        return;
      }
    }
  }

  private static void acknowledge(AdminQueue admin, AsyncEvent event) {
    if (event.logPage() == LogId.SUPPORTED) {
      return;
    }
    try {
      new LogPages(admin).read(event.logPage(), logBytes(event.logPage()));
    } catch (NvmeStatusException e) {
      // The event is delivered all the same; the controller keeps it masked.
      NvmeController.LOG.log(System.Logger.Level.DEBUG, "cannot acknowledge " + event, e);
    }
  }

  private static int logBytes(int logId) {
    return switch (logId) {
      case LogId.ERROR -> ErrorLogEntry.SIZE;
      case LogId.CHANGED_NAMESPACES -> ChangedNamespaceList.SIZE;
      default -> LOG_BYTES;
    };
  }
}
