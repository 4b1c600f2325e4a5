package io.gpunvme.core.accel;

import io.gpunvme.nvme.InvalidRequestException;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;

/**
 * Memory on an {@link Accelerator} that controllers can be given.
 *
 * <p>Safe for all threads. {@link #close} takes the memory away from every controller first; the
 * caller makes sure that no command in flight still names it. Use after close throws.
 */
public abstract class DeviceBuffer implements AutoCloseable {
  private final Map<BusMapper, BusRange> mappings = new HashMap<>();
  private boolean closed;

  /** For the accelerators. */
  protected DeviceBuffer() {}

  /** The memory as the accelerator addresses it; readable by the CPU only if host memory. */
  protected abstract MemorySegment segment();

  /** Frees the memory; nothing maps it any more. Called once. */
  protected abstract void free();

  /** Size in bytes, a multiple of the page size. */
  public final long size() {
    return segment().byteSize();
  }

  /**
   * This buffer's bus addresses for one controller; mapped on first use, unmapped by {@link
   * #close}.
   *
   * @throws io.gpunvme.nvme.DmaMappingException if the controller cannot be given this memory
   */
  public final synchronized BusRange mapFor(BusMapper controller) {
    if (closed) {
      throw new IllegalStateException("this buffer is closed");
    }
    return mappings.computeIfAbsent(controller, c -> c.map(segment()));
  }

  /**
   * Copies from this buffer to host memory, {@code target.byteSize()} bytes from {@code offset}.
   */
  public abstract void copyToHost(long offset, MemorySegment target);

  /** Copies host memory into this buffer at {@code offset}. */
  public abstract void copyFromHost(MemorySegment source, long offset);

  /** Checks that a range lies inside this buffer. */
  protected final void checkRange(long offset, long bytes) {
    if (offset < 0 || bytes < 0 || bytes > size() - offset) {
      throw new InvalidRequestException(
          bytes + " bytes at offset " + offset + " leave the buffer of " + size() + " bytes");
    }
  }

  @Override
  public final synchronized void close() {
    if (!closed) {
      closed = true;
      mappings.values().forEach(BusRange::close);
      mappings.clear();
      free();
    }
  }
}
