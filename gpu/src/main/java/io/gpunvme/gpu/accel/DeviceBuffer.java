package io.gpunvme.gpu.accel;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Memory that an {@link Accelerator} can address and that controllers can be mapped to: the
 * accelerator's own, or host memory.
 *
 * <p>Safe for all threads. Whoever has commands, copies or kernels use the memory has a lease of it
 * meanwhile. {@link #close} waits for nobody: it gives no lease any more, and whoever gives back
 * the last one takes the memory away from every controller and frees it. Use after close throws an
 * exception.
 */
public abstract class DeviceBuffer implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger(DeviceBuffer.class.getName());

  /** Added to the number of leases once there will be no more. */
  private static final int CLOSING = Integer.MIN_VALUE;

  private final AtomicInteger leases = new AtomicInteger();
  private final Map<BusMapper, BusRange> mappings = new ConcurrentHashMap<>();
  private final List<Runnable> users = new ArrayList<>();

  /** Those of {@link #mappings}; never changed, but replaced. */
  private volatile BusMapper[] givenTo = {};

  /** For the accelerators. */
  protected DeviceBuffer() {}

  /** Size in bytes, a multiple of the page size. */
  public abstract long size();

  /** Whether this is host memory, which the CPU reaches by {@link #segment}. */
  public abstract boolean isHost();

  /**
   * The memory as the CPU addresses it.
   *
   * @throws IllegalStateException if it is not host memory ({@link #isHost})
   */
  public abstract MemorySegment segment();

  /** Where the accelerator finds the first byte. */
  public abstract long deviceAddress();

  /** Makes the memory reachable for one controller. */
  protected abstract BusRange map(BusMapper controller);

  /** Frees the memory; nothing maps it any more. Called once. */
  protected abstract void free();

  /**
   * This buffer's bus addresses for one controller; mapped on first use, unmapped by {@link
   * #close}.
   *
   * @throws io.gpunvme.nvme.DmaMappingException if the controller cannot be given this memory
   */
  public final BusRange mapFor(BusMapper controller) {
    // Without the monitor, and without the function that the method after it is to be given.
    BusRange known = mappings.get(controller);
    return known == null ? mapFirst(controller) : known;
  }

  private synchronized BusRange mapFirst(BusMapper controller) {
    requireThere();
    BusRange range = mappings.computeIfAbsent(controller, this::map);
    givenTo = mappings.keySet().toArray(BusMapper[]::new);
    return range;
  }

  /**
   * Why something may still write to this memory although the transfer that made it has failed: see
   * {@link BusMapper#inDoubt}. Null if that cannot be.
   */
  public final @Nullable String inDoubt() {
    for (BusMapper controller : givenTo) {
      String doubt = controller.inDoubt();
      if (doubt != null) {
        return doubt;
      }
    }
    return null;
  }

  /**
   * Copies from this buffer to host memory, {@code target.byteSize()} bytes from {@code offset}.
   * Returns when the data has arrived.
   */
  public abstract void copyToHost(long offset, MemorySegment target);

  /**
   * Copies host memory into this buffer at {@code offset}. Returns when the accelerator can see it.
   */
  public abstract void copyFromHost(MemorySegment source, long offset);

  /** Checks that a range lies inside this buffer. */
  protected final void checkRange(long offset, long bytes) {
    if (offset < 0 || bytes < 0 || bytes > size() - offset) {
      throw new InvalidRequestException(
          bytes
              + " bytes at offset "
              + offset
              + " are not inside the buffer of "
              + size()
              + " bytes");
    }
  }

  /**
   * Runs {@code release} before this memory is freed, for users who must let go of it first.
   *
   * @return cancels this; idempotent
   */
  public final synchronized Runnable beforeFree(Runnable release) {
    requireThere();
    users.add(release);
    return () -> forget(release);
  }

  private synchronized void forget(Runnable release) {
    users.remove(release);
  }

  /**
   * Keeps the memory until {@link #release}, also if it is closed meanwhile.
   *
   * @throws IllegalStateException if it is closed
   */
  public final void lease() {
    int before;
    do {
      before = leases.get();
      if (before < 0) {
        throw closedException();
      }
    } while (!leases.compareAndSet(before, before + 1));
  }

  /** A lease of each of them, or of none; as {@link #lease}. */
  public static void leaseAll(List<DeviceBuffer> buffers) {
    int leased = 0;
    try {
      for (; leased < buffers.size(); leased++) {
        buffers.get(leased).lease();
      }
    } catch (RuntimeException | Error e) {
      releaseAll(buffers.subList(0, leased));
      throw e;
    }
  }

  /** Gives a lease back: nothing that it was for is at work in the memory any more. */
  public final void release() {
    if (leases.decrementAndGet() == CLOSING) {
      try {
        letGo();
      } catch (RuntimeException e) {
        // Whoever closed it is gone, and who used it last has nothing to do with it.
        LOG.log(System.Logger.Level.WARNING, "a buffer of %d bytes".formatted(size()), e);
      }
    }
  }

  /** Gives back what {@link #leaseAll} gave. */
  public static void releaseAll(List<DeviceBuffer> buffers) {
    buffers.forEach(DeviceBuffer::release);
  }

  /** Those who have a lease may go on as if it were open. */
  private void requireThere() {
    if (leases.get() == CLOSING) {
      throw closedException();
    }
  }

  private static IllegalStateException closedException() {
    return new IllegalStateException("this buffer is closed");
  }

  /**
   * Frees the memory: now, or as soon as nobody has a lease of it, if somebody has. Only the first
   * call does something. Never waits.
   */
  @Override
  public final void close() {
    if (leases.getAndUpdate(n -> n | CLOSING) == 0) {
      letGo();
    }
  }

  /**
   * Closes all of them.
   *
   * @throws IllegalStateException if somebody has a lease of one: that one's memory is not free yet
   */
  static void closeAll(Collection<? extends DeviceBuffer> buffers) {
    List<DeviceBuffer> all = List.copyOf(buffers);
    CloseAll.each(all, DeviceBuffer::close);
    long kept = all.stream().filter(buffer -> buffer.leases.get() > CLOSING).count();
    if (kept > 0) {
      throw new IllegalStateException(
          "%d buffers are in use by transfers or kernels: close the storages first"
              .formatted(kept));
    }
  }

  /** Once: nobody has a lease, or will have one. */
  private void letGo() {
    try {
      // Outside the monitor: those who let go may take locks of their own.
      CloseAll.each(takeUsers(), Runnable::run);
    } finally {
      freeNow();
    }
  }

  private synchronized List<Runnable> takeUsers() {
    List<Runnable> all = List.copyOf(users);
    users.clear();
    return all;
  }

  private synchronized void freeNow() {
    try {
      CloseAll.each(mappings.values(), BusRange::close);
      mappings.clear();
    } finally {
      free();
    }
  }
}
