package io.gpunvme.gpu.accel;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Memory that an {@link Accelerator} can address and that controllers can be mapped to: the
 * accelerator's own, or host memory.
 *
 * <p>Safe for all threads. {@link #close} first takes the memory away from every controller. The
 * caller makes sure that no command in flight still names it. Use after close throws an exception.
 */
public abstract class DeviceBuffer implements AutoCloseable {
  private final Map<BusMapper, BusRange> mappings = new ConcurrentHashMap<>();
  private final List<Runnable> users = new ArrayList<>();

  /** Those of {@link #mappings}; never changed, but replaced. */
  private volatile BusMapper[] givenTo = {};

  private boolean closed;

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
    if (closed) {
      throw new IllegalStateException("this buffer is closed");
    }
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
    if (closed) {
      throw new IllegalStateException("this buffer is closed");
    }
    users.add(release);
    return () -> forget(release);
  }

  private synchronized void forget(Runnable release) {
    users.remove(release);
  }

  /**
   * Frees the memory when all that use it have let go of it. Only the first call does something;
   * others, by whichever thread, return at once.
   */
  @Override
  public final void close() {
    List<Runnable> all = beginClose();
    if (all != null) {
      try {
        // Outside the monitor: those who let go may take locks of their own.
        CloseAll.each(all, Runnable::run);
      } finally {
        freeNow();
      }
    }
  }

  /** Those who have to let go; null if somebody closes this already. */
  private synchronized @Nullable List<Runnable> beginClose() {
    if (closed) {
      return null;
    }
    closed = true;
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
