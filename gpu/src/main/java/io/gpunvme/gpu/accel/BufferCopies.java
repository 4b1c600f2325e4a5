package io.gpunvme.gpu.accel;

/**
 * Copies between buffers of one accelerator, of any kinds, many at a time. For one thread.
 *
 * <p>Copies that were added have no order among them. The buffers stay open until {@link #await}.
 */
public interface BufferCopies extends AutoCloseable {
  /**
   * Adds a copy, which {@link #start} or {@link #await} starts at the latest.
   *
   * @param bytes above 0; inside both buffers
   */
  void add(
      DeviceBuffer source, long sourceOffset, DeviceBuffer target, long targetOffset, long bytes);

  /** Starts what was added. */
  void start();

  /**
   * Starts what was added and returns when all of it has arrived.
   *
   * @throws io.gpunvme.cuda.CudaException if the GPU failed
   */
  void await();

  /** Waits for what was started. */
  @Override
  void close();
}
