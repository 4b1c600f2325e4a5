package io.gpunvme.gpu.accel;

/**
 * Copies between buffers of one accelerator, of any kinds, many at a time. For one thread.
 *
 * <p>Copies may be carried out in any order. The buffers must stay open until {@link #await}.
 */
public interface BufferCopies extends AutoCloseable {
  /**
   * Adds a copy, which {@link #start} or {@link #await} starts at the latest.
   *
   * @param bytes above 0; inside both buffers
   */
  void add(
      DeviceBuffer source, long sourceOffset, DeviceBuffer target, long targetOffset, long bytes);

  /** Starts the added copies. */
  void start();

  /**
   * Starts the added copies and returns when all data has arrived.
   *
   * @throws io.gpunvme.cuda.CudaException if the GPU failed
   */
  void await();

  /** Waits for the started copies. */
  @Override
  void close();
}
