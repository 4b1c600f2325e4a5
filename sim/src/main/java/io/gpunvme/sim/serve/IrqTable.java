package io.gpunvme.sim.serve;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.EventFd;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import io.gpunvme.nvme.vfiouser.RefusedException;
import io.gpunvme.sim.InterruptSink;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.sim.serve.ServerSession.Answer;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Interrupts: an eventfd of the client for each vector. Messages by the session's thread,
 * interrupts by the controller's.
 *
 * <p>A client that is a virtual machine keeps the MSI-X table to itself, so a vector is unmasked in
 * the controller's when it is given an eventfd. INTx is masked whenever it has been signalled,
 * until the client unmasks it, as VFIO has it.
 */
final class IrqTable implements InterruptSink, AutoCloseable {
  private static final int DATA = Protocol.SET_NONE | Protocol.SET_BOOL | Protocol.SET_EVENTFD;
  private static final int ACTION = Protocol.SET_MASK | Protocol.SET_UNMASK | Protocol.SET_TRIGGER;

  private final SimulatedController controller;

  /** By type and vector; guarded by this, as all below. */
  private final @Nullable EventFd[][] events = new EventFd[Protocol.IRQ_TYPES][];

  private boolean asserted;
  private boolean lineMasked;

  IrqTable(SimulatedController controller) {
    this.controller = controller;
    for (int type = 0; type < events.length; type++) {
      events[type] = new EventFd[count(type)];
    }
  }

  private int count(int type) {
    return switch (type) {
      case Protocol.IRQ_INTX, Protocol.IRQ_ERROR, Protocol.IRQ_REQUEST -> 1;
      case Protocol.IRQ_MSIX -> controller.simConfig().vectors();
      default -> 0;
    };
  }

  private static RefusedException refused(Message message, int errno) {
    return new RefusedException(message.command(), errno);
  }

  Answer info(Message message) {
    ByteBuffer asked = message.payload();
    int index = asked.remaining() < Protocol.IRQ_INFO_BYTES ? -1 : asked.getInt(8);
    if (index < 0
        || index >= Protocol.IRQ_TYPES
        || Integer.toUnsignedLong(asked.getInt(0)) < Protocol.IRQ_INFO_BYTES) {
      throw refused(message, Errno.EINVAL);
    }
    int flags =
        switch (index) {
          case Protocol.IRQ_INTX ->
              Protocol.IRQ_EVENTFD | Protocol.IRQ_MASKABLE | Protocol.IRQ_AUTOMASKED;
          default -> Protocol.IRQ_EVENTFD;
        };
    return Answer.of(
        Protocol.payload(Protocol.IRQ_INFO_BYTES)
            .putInt(Protocol.IRQ_INFO_BYTES)
            .putInt(flags)
            .putInt(index)
            .putInt(count(index))
            .flip());
  }

  Answer set(Message message) {
    ByteBuffer asked = message.payload();
    if (asked.remaining() < Protocol.SET_IRQS_BYTES
        || Integer.toUnsignedLong(asked.getInt(0)) < Protocol.SET_IRQS_BYTES) {
      throw refused(message, Errno.EINVAL);
    }
    int flags = asked.getInt(4);
    int type = asked.getInt(8);
    long start = Integer.toUnsignedLong(asked.getInt(12));
    long count = Integer.toUnsignedLong(asked.getInt(16));
    int data = flags & DATA;
    int action = flags & ACTION;
    boolean known = type >= 0 && type < Protocol.IRQ_TYPES;
    boolean one = Integer.bitCount(data) == 1 && Integer.bitCount(action) == 1;
    if (!known || !one || flags != (data | action) || start + count > count(type)) {
      throw refused(message, Errno.EINVAL);
    }
    int payload = asked.remaining() - Protocol.SET_IRQS_BYTES;
    int descriptors = message.descriptors().size();
    boolean fits =
        switch (data) {
          case Protocol.SET_BOOL -> payload == count && descriptors == 0;
          case Protocol.SET_EVENTFD -> descriptors == 0 || descriptors == count;
          default -> descriptors == 0;
        };
    if (!fits) {
      throw refused(message, Errno.EINVAL);
    }
    if (data == Protocol.SET_EVENTFD) {
      if (action != Protocol.SET_TRIGGER) {
        throw refused(message, Errno.EOPNOTSUPP);
      }
      assign(message, type, (int) start, (int) count);
    } else if (data == Protocol.SET_NONE && action == Protocol.SET_TRIGGER && count == 0) {
      assign(message, type, 0, count(type));
    } else {
      for (int i = 0; i < count; i++) {
        boolean meant = data == Protocol.SET_NONE || asked.get(Protocol.SET_IRQS_BYTES + i) != 0;
        if (meant) {
          act(type, (int) start + i, action);
        }
      }
    }
    return Answer.of(Protocol.payload(0));
  }

  /** Gives vectors the eventfds of a message, or none if it has none. */
  private void assign(Message message, int type, int start, int count) {
    List<EventFd> fresh = new ArrayList<>();
    try {
      while (!message.descriptors().isEmpty()) {
        fresh.add(EventFd.received(message.take(0)));
      }
    } catch (PosixException e) {
      fresh.forEach(EventFd::close);
      throw refused(message, e.errno());
    }
    synchronized (this) {
      for (int i = 0; i < count; i++) {
        EventFd old = events[type][start + i];
        events[type][start + i] = fresh.isEmpty() ? null : fresh.get(i);
        if (old != null) {
          old.close();
        }
      }
    }
    for (int i = 0; i < count; i++) {
      act(type, start + i, fresh.isEmpty() ? Protocol.SET_MASK : Protocol.SET_UNMASK);
    }
  }

  private void act(int type, int vector, int action) {
    if (action == Protocol.SET_TRIGGER) {
      signal(type, vector);
    } else if (type == Protocol.IRQ_MSIX) {
      // Not with the monitor held: the table's own comes first.
      controller.maskVector(vector, action == Protocol.SET_MASK);
    } else if (type == Protocol.IRQ_INTX) {
      synchronized (this) {
        lineMasked = action == Protocol.SET_MASK;
        signalLine();
      }
    }
  }

  private synchronized void signal(int type, int vector) {
    EventFd event = events[type][vector];
    if (event != null) {
      try {
        event.signal();
      } catch (PosixException e) {
        // The client's own: what it has made of it is its own, too.
        event.close();
        events[type][vector] = null;
      }
    }
  }

  private synchronized void signalLine() {
    if (asserted && !lineMasked && events[Protocol.IRQ_INTX][0] != null) {
      lineMasked = true;
      signal(Protocol.IRQ_INTX, 0);
    }
  }

  // ---- from the controller

  @Override
  public void message(int vector, long address, int data) {
    signal(Protocol.IRQ_MSIX, vector);
  }

  @Override
  public synchronized void level(boolean now) {
    asserted = now;
    signalLine();
  }

  /** Vectors that have an eventfd stay unmasked: who gave it does not know of the reset. */
  @Override
  public void reset() {
    List<Integer> served = new ArrayList<>();
    synchronized (this) {
      for (int i = 0; i < events[Protocol.IRQ_MSIX].length; i++) {
        if (events[Protocol.IRQ_MSIX][i] != null) {
          served.add(i);
        }
      }
    }
    for (int vector : served) {
      act(Protocol.IRQ_MSIX, vector, Protocol.SET_UNMASK);
    }
  }

  /** Closes the eventfds. The controller does not use this any more. */
  @Override
  public synchronized void close() {
    for (@Nullable EventFd[] type : events) {
      for (int i = 0; i < type.length; i++) {
        EventFd event = type[i];
        if (event != null) {
          event.close();
          type[i] = null;
        }
      }
    }
  }
}
