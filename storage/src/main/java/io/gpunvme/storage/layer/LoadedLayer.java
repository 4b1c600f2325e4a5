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

  /** The layer. */
  public Layer layer() {
    return ticket.layer;
  }

  /** The loader's memory; the layer is at {@link #bufferOffset} in it. */
  public DeviceBuffer buffer() {
    requireHeld();
    return memory;
  }

  /** The offset of the first byte in {@link #buffer}: a multiple of 4096. */
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
   * Waits until the bytes have arrived. Call it for a layer that was taken for a stream: results
   * that the stream computed with the layer are right only if this returns normally.
   *
   * @throws LayerException if the bytes did not arrive; the stream went on with undefined data
   */
  public void await() {
    ring.await(ticket);
  }

  /**
   * Gives the slot back once all work that is in the stream now is over. Does not wait.
   *
   * @throws IllegalStateException if the stream is closed; the layer stays taken
   */
  public void release(CudaStream stream) {
    ring.release(ticket, stream);
  }

  /**
   * Gives the slot back: at once, or, if the layer was taken for a stream, as {@link
   * #release(CudaStream)} does.
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
