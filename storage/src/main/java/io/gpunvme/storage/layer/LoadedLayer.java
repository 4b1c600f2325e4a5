package io.gpunvme.storage.layer;

import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.DeviceBuffer;

/**
 * A layer in a slot of its loader, until it is released. Safe for all threads.
 *
 * <p>Releasing twice, or after the loader's close, does nothing.
 */
public final class LoadedLayer implements AutoCloseable {
  private final LayerRing<CudaStream> ring;
  private final Ticket<CudaStream> ticket;
  private final DeviceBuffer memory;

  LoadedLayer(LayerRing<CudaStream> ring, Ticket<CudaStream> ticket, DeviceBuffer memory) {
    this.ring = ring;
    this.ticket = ticket;
    this.memory = memory;
  }

  /** Which it is. */
  public Layer layer() {
    return ticket.layer;
  }

  /** The loader's memory; {@link #bufferOffset} says where in it. */
  public DeviceBuffer buffer() {
    requireHeld();
    return memory;
  }

  /** Where the first byte is in {@link #buffer}: a multiple of 4096. */
  public long bufferOffset() {
    requireHeld();
    return ticket.place().offset;
  }

  /** Where the accelerator finds the first byte. */
  public long deviceAddress() {
    return buffer().deviceAddress() + bufferOffset();
  }

  private void requireHeld() {
    if (ring.isReleased(ticket)) {
      throw new IllegalStateException(ticket.layer + " was released");
    }
  }

  /**
   * Waits until the bytes are there. Of use for a layer that was taken for a stream: what the
   * stream computed before this returns is right only if this does.
   *
   * @throws LayerException if they are not; the stream went on with what happened to be there
   */
  public void await() {
    ring.await(ticket);
  }

  /**
   * Gives the slot back when all work is over that is in the stream now. Does not wait.
   *
   * @throws IllegalStateException if the stream is closed; the layer stays taken
   */
  public void release(CudaStream stream) {
    ring.release(ticket, stream);
  }

  /**
   * Gives the slot back: at once, or, if the layer was taken for a stream, as {@link
   * #release(CudaStream)} does with it.
   */
  public void release() {
    ring.release(ticket, null);
  }

  /** The same as {@link #release()}. */
  @Override
  public void close() {
    release();
  }
}
