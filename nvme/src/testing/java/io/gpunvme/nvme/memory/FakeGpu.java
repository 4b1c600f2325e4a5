package io.gpunvme.nvme.memory;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A device whose memory is host memory, but known to a controller as remote memory only: what a
 * test maps here it can read and write as the device would, and the controller must copy.
 *
 * <p>Copies that are started move nothing until the device's time has come, which passes with every
 * question whether a copy is over and with every {@link #tick}. Each misuse of a port is remembered
 * and thrown by {@link #requireNoMisuse}. Safe for all threads.
 */
public final class FakeGpu implements BusMapper {
  private static final VarHandle INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();
  private static final int UNIT = 16;
  private static final long LARGEST_IN_UNITS = 1 << 16;

  /** What a device throws when it fails. */
  public static final class Broken extends RuntimeException {
    private static final long serialVersionUID = 1;

    Broken() {
      super("the device fell off the bus");
    }
  }

  private final BusMapper controller;
  private final List<Port> ports = new ArrayList<>();
  private @Nullable AssertionError misuse;
  private LongSupplier delay = () -> 0;
  private long now;
  private boolean holding;
  private long heldFrom;
  private Runnable atNextRead = () -> {};
  private int operationsLeft = Integer.MAX_VALUE;

  private long reads;
  private long writes;
  private long startedReads;
  private long startedWrites;
  private long bounces;

  /** A device beside {@code controller}. */
  public FakeGpu(BusMapper controller) {
    this.controller = controller;
  }

  /** Maps host memory as if it were this device's. */
  @Override
  public BusRange map(MemorySegment memory) {
    BusRange range = controller.map(memory(memory));
    return BusRange.contiguous(memory, range.busAddress(0), range::close);
  }

  /** Host memory as this device's. */
  public RemoteMemory memory(MemorySegment memory) {
    return new Memory(memory);
  }

  // ---- what the test decides

  /** Copies take so many units of the device's time. */
  public synchronized void delay(LongSupplier units) {
    delay = units;
  }

  /** Copies of at least so many bytes wait for {@link #release}. */
  public synchronized void hold(long bytes) {
    holding = true;
    heldFrom = bytes;
  }

  /** Nothing waits any more. */
  public synchronized void release() {
    holding = false;
  }

  /** Every operation after the next {@code operations} fails. */
  public synchronized void breakAfter(int operations) {
    operationsLeft = operations;
  }

  /** Operations work again, on new ports. */
  public synchronized void heal() {
    operationsLeft = Integer.MAX_VALUE;
  }

  /** Something that happens, once, when the next blocking read has been asked for. */
  public synchronized void atNextRead(Runnable event) {
    atNextRead = event;
  }

  private synchronized Runnable takeEvent() {
    Runnable event = atNextRead;
    atNextRead = () -> {};
    return event;
  }

  /** The device's time passes. */
  public synchronized void tick() {
    now++;
    ports.forEach(Port::progress);
  }

  // ---- what the test sees

  /** Ports open now. */
  public synchronized int openPorts() {
    return ports.size();
  }

  /** Copies started that have not moved anything yet. */
  public synchronized int underWay() {
    return ports.stream().mapToInt(p -> p.copies.size()).sum();
  }

  /** Blocking reads so far. */
  public synchronized long reads() {
    return reads;
  }

  /** Blocking writes so far. */
  public synchronized long writes() {
    return writes;
  }

  /** Reads started so far. */
  public synchronized long startedReads() {
    return startedReads;
  }

  /** Writes started so far. */
  public synchronized long startedWrites() {
    return startedWrites;
  }

  /** Pieces of bounce memory asked for so far. */
  public synchronized long bounces() {
    return bounces;
  }

  /** Fails if a port was used as it must not be. */
  public synchronized void requireNoMisuse() {
    if (misuse != null) {
      throw misuse;
    }
  }

  private synchronized void misused(String how) {
    if (misuse == null) {
      misuse = new AssertionError(how);
    }
  }

  private void operation() {
    if (operationsLeft == 0) {
      throw new Broken();
    }
    operationsLeft--;
  }

  private final class Memory implements RemoteMemory {
    private final MemorySegment memory;

    Memory(MemorySegment memory) {
      this.memory = memory;
    }

    @Override
    public String name() {
      return "fake GPU memory of " + memory.byteSize() + " bytes";
    }

    @Override
    public long size() {
      return memory.byteSize();
    }

    @Override
    public RemotePort openPort(RemotePort.Use use) {
      synchronized (FakeGpu.this) {
        operation();
        Port port = new Port(memory);
        ports.add(port);
        return port;
      }
    }
  }

  /** A copy that has been started. */
  private record Copy(long ticket, long due, MemorySegment from, MemorySegment to) {}

  private final class Port implements RemotePort {
    private final MemorySegment memory;
    private final Arena arena = Arena.ofShared();
    private final AtomicBoolean inUse = new AtomicBoolean();
    private final Deque<Copy> copies = new ArrayDeque<>();
    private long lastTicket;
    private boolean open = true;

    Port(MemorySegment memory) {
      this.memory = memory;
    }

    /** Begins a call; fails if another thread is in one. */
    private void enter() {
      if (!inUse.compareAndSet(false, true)) {
        misused("two threads use a port at the same time");
      }
      if (!open) {
        misused("a port is used after it was closed");
      }
    }

    private void leave() {
      inUse.set(false);
    }

    @Override
    public void read(long offset, MemorySegment to) {
      takeEvent().run();
      block(memory.asSlice(offset, to.byteSize()), to);
      synchronized (FakeGpu.this) {
        reads++;
      }
    }

    @Override
    public void write(long offset, MemorySegment from) {
      block(from, memory.asSlice(offset, from.byteSize()));
      synchronized (FakeGpu.this) {
        writes++;
      }
    }

    private void block(MemorySegment from, MemorySegment to) {
      enter();
      try {
        finish();
        synchronized (FakeGpu.this) {
          operation();
          move(from, to);
        }
      } finally {
        leave();
      }
    }

    /** Returns when no copy is under way; the time that takes passes meanwhile. */
    private void finish() {
      while (true) {
        synchronized (FakeGpu.this) {
          now++;
          progress();
          if (copies.isEmpty()) {
            return;
          }
        }
        Thread.yield();
      }
    }

    @Override
    public long startRead(long offset, MemorySegment to) {
      synchronized (FakeGpu.this) {
        startedReads++;
      }
      return start(memory.asSlice(offset, to.byteSize()), to);
    }

    @Override
    public long startWrite(long offset, MemorySegment from) {
      synchronized (FakeGpu.this) {
        startedWrites++;
      }
      return start(from, memory.asSlice(offset, from.byteSize()));
    }

    private long start(MemorySegment from, MemorySegment to) {
      enter();
      try {
        synchronized (FakeGpu.this) {
          operation();
          lastTicket++;
          copies.add(new Copy(lastTicket, now + delay.getAsLong(), from, to));
          progress();
          return lastTicket;
        }
      } finally {
        leave();
      }
    }

    @Override
    public boolean isDone(long ticket) {
      enter();
      try {
        synchronized (FakeGpu.this) {
          operation();
          if (ticket < 1 || ticket > lastTicket) {
            misused("nobody got ticket " + ticket);
          }
          now++;
          progress();
          return copies.isEmpty() || copies.getFirst().ticket > ticket;
        }
      } finally {
        leave();
      }
    }

    /** Moves what is due. */
    private void progress() {
      while (!copies.isEmpty() && isDue(copies.getFirst())) {
        Copy c = copies.removeFirst();
        move(c.from, c.to);
      }
    }

    private boolean isDue(Copy c) {
      return c.due <= now && !(holding && c.from.byteSize() >= heldFrom);
    }

    private void move(MemorySegment from, MemorySegment to) {
      try {
        copy(from, to);
      } catch (IllegalStateException e) {
        misused("a copy touched memory that was freed: " + e);
      }
    }

    @Override
    public MemorySegment bounce(long bytes) {
      synchronized (FakeGpu.this) {
        operation();
        bounces++;
        return arena.allocate(bytes, 64).fill((byte) 0xB0);
      }
    }

    @Override
    public void close() {
      enter();
      finish();
      synchronized (FakeGpu.this) {
        ports.remove(this);
        open = false;
      }
      arena.close();
      leave();
    }
  }

  /** Whoever looks at the last word of an aligned unit sees all of it. */
  private static void copy(MemorySegment from, MemorySegment to) {
    long bytes = from.byteSize();
    if ((to.address() | bytes) % UNIT != 0 || bytes > LARGEST_IN_UNITS) {
      to.copyFrom(from);
      return;
    }
    for (long at = 0; at < bytes; at += UNIT) {
      long last = at + UNIT - Integer.BYTES;
      MemorySegment.copy(from, at, to, at, UNIT - Integer.BYTES);
      // Release: whoever polls the memory and acquires this word is the other side.
      INT.setRelease(to, last, from.get(ValueLayout.JAVA_INT_UNALIGNED, last));
    }
  }
}
