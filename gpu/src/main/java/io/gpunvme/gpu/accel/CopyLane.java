package io.gpunvme.gpu.accel;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaContext;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.StreamPriority;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;

/**
 * A stream of CUDA copies that several ports use. Each copy has an event from a ring; a stream ends
 * its copies in order, so the event of a later copy answers for one whose own event has been used
 * again. Safe for all threads.
 */
final class CopyLane {
  /** Copies whose end can be told one by one. */
  private static final int EVENTS = 64;

  private final CudaStream stream;
  private final CudaEvent[] events = new CudaEvent[EVENTS];
  private final Consumer<CopyLane> last;
  private int users;

  /** The last copy that was started; tickets are numbers from 1 on. */
  private long started;

  /** The last copy that is known to be over. */
  private long over;

  /**
   * @param last told when somebody has left, who may have been the last
   */
  CopyLane(CudaContext context, Consumer<CopyLane> last) {
    this.last = last;
    stream = context.stream(StreamPriority.HIGHEST);
    try {
      for (int i = 0; i < EVENTS; i++) {
        events[i] = context.event();
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::free);
      throw e;
    }
  }

  synchronized void enter() {
    users++;
  }

  synchronized boolean isUnused() {
    return users == 0;
  }

  /** Waits for the copies. */
  void leave() {
    quietly(stream::synchronize);
    synchronized (this) {
      users--;
    }
    last.accept(this);
  }

  /** Nobody uses it any more. */
  void free() {
    for (CudaEvent event : events) {
      if (event != null) {
        quietly(event::close);
      }
    }
    quietly(stream::close);
  }

  static void quietly(Runnable step) {
    try {
      step.run();
    } catch (CudaException | IllegalStateException e) {
      // A context that failed or is closed copies nothing any more, and frees what it had itself.
    }
  }

  /** Copies and waits. */
  void toHost(MemorySegment to, long from) {
    stream.copyToHostAsync(to, from);
    stream.synchronize();
  }

  /** Copies and waits. */
  void toDevice(long to, MemorySegment from) {
    stream.copyToDeviceAsync(to, from);
    stream.synchronize();
  }

  /** Begins to copy; returns a ticket. */
  synchronized long startToHost(MemorySegment to, long from) {
    stream.copyToHostAsync(to, from);
    return ticket();
  }

  /** Begins to copy; returns a ticket. */
  synchronized long startToDevice(long to, MemorySegment from) {
    stream.copyToDeviceAsync(to, from);
    return ticket();
  }

  private long ticket() {
    started++;
    stream.record(events[(int) (started % EVENTS)]);
    return started;
  }

  /** Whether the copy with this ticket is over. */
  synchronized boolean isDone(long ticket) {
    if (ticket > over) {
      long known = Math.max(ticket, started - EVENTS + 1);
      if (events[(int) (known % EVENTS)].isDone()) {
        over = known;
      }
    }
    return ticket <= over;
  }
}
