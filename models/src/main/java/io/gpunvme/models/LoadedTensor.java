package io.gpunvme.models;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.models.format.ElementType;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * A tensor, or a part of one, in the accelerator's memory: row-major, aligned to 256 bytes. It owns
 * its bytes until it is closed. Safe for all threads.
 */
public final class LoadedTensor implements AutoCloseable {
  private final Part part;
  private final Allocation allocation;
  private final long offset;
  private final AtomicBoolean closed = new AtomicBoolean();

  LoadedTensor(Part part, Allocation allocation, long offset) {
    this.part = part;
    this.allocation = allocation;
    this.offset = offset;
    allocation.use();
  }

  /** Its name in the model. */
  public String name() {
    return part.name();
  }

  /** The type of its elements. */
  public ElementType type() {
    return part.tensor().type();
  }

  /** Elements along each dimension, the slowest varying first; for a part, those of the part. */
  public long[] shape() {
    return part.shape();
  }

  /** The slice of the tensor; null: all of it. */
  public @Nullable TensorSlice slice() {
    return part.slice();
  }

  /** How many bytes. */
  public long bytes() {
    return part.bytes();
  }

  /**
   * The memory that holds it. It may hold other tensors too: use only {@link #bytes} at {@link
   * #offset}.
   */
  public DeviceBuffer buffer() {
    requireOpen();
    return allocation.memory();
  }

  /** The offset of its first byte in {@link #buffer}. */
  public long offset() {
    return offset;
  }

  /** The accelerator's address of its first byte. */
  public long deviceAddress() {
    return buffer().deviceAddress() + offset;
  }

  private void requireOpen() {
    if (closed.get()) {
      throw new IllegalStateException("tensor '" + name() + "' is closed");
    }
  }

  /** Gives its memory back. The memory is freed with the last tensor in it. Idempotent. */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      allocation.leave();
    }
  }

  @Override
  public String toString() {
    return "%s %s%s".formatted(name(), type(), Arrays.toString(shape()));
  }
}
